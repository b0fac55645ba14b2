"""What a topic is called where its records are written to: `--map a=b`, `--prefix P`, or as it was."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import click
from pyspark.sql import Column
from pyspark.sql import functions as sql

from spark_integration.errors import PipelineError
from spark_integration.options import grouped, pairs

LEGAL = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")


@dataclass(frozen=True)
class Names:
    """The target's name of each topic: *mapped* says it, all others get *prefix* in front."""

    prefix: str = ""
    mapped: Mapping[str, str] = field(default_factory=dict)

    def of(self, topic: str) -> str:
        """Return what *topic* is called in the target."""
        return self.mapped.get(topic, self.prefix + topic)

    def column(self) -> Column:
        """Return the same of the column `topic`."""
        topic = sql.col("topic")
        name = sql.concat(sql.lit(self.prefix), topic)
        for source, target in self.mapped.items():
            name = sql.when(topic == source, sql.lit(target)).otherwise(name)
        return name

    def check(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the target's name of each of *topics*; PipelineError where Kafka takes none such, or two get one."""
        names = {topic: self.of(topic) for topic in topics}
        sources: dict[str, list[str]] = defaultdict(list)
        for topic, name in names.items():
            if not LEGAL.fullmatch(name):
                raise PipelineError(
                    f"{topic} would be called {name!r}, which is no topic's name: give letters, digits, . _ and -"
                )
            sources[name].append(topic)
        if twice := next((name for name, topics in sources.items() if len(topics) > 1), None):
            raise PipelineError(f"{' and '.join(sources[twice])} would both be called {twice}: map them apart")
        return names

    def check_mapped(self, topics: Iterable[str], where: str) -> None:
        """Refuse a mapping of what is not among *topics*; *where* says what holds those."""
        if missing := sorted(self.mapped.keys() - set(topics)):
            raise PipelineError(f"{where} no topic {missing[0]}, which --map names: correct it, or leave it away")


def _names(values: dict[str, Any]) -> Names:
    return Names(values.pop("prefix"), pairs(values.pop("mapped")))


names_options = grouped(
    "names",
    [
        click.option("--prefix", default="", help="What the target's topics have in front of their names."),
        click.option("--map", "mapped", multiple=True, metavar="A=B", help="Topic A is called B there; many times."),
    ],
    _names,
)
