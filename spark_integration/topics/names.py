"""Names of topics in a target cluster: `--map a=b`, `--prefix P`, or unchanged. Imports no pyspark."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from spark_integration.errors import PipelineError

_LEGAL = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")


def is_legal_name(name: str) -> bool:
    """Return whether Kafka accepts a topic of that name."""
    return bool(_LEGAL.fullmatch(name))


@dataclass(frozen=True)
class TargetNames:
    """The name that each topic has in the target: *mapped* gives it, all other topics get *prefix* in front."""

    prefix: str = ""
    mapped: Mapping[str, str] = field(default_factory=dict)

    def of(self, topic: str) -> str:
        """Return the target's name of *topic*."""
        return self.mapped.get(topic, self.prefix + topic)

    def check(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the target's name of each of *topics*; raises PipelineError for an illegal name or one used twice."""
        names = {topic: self.of(topic) for topic in topics}
        sources: dict[str, list[str]] = defaultdict(list)
        for topic, name in names.items():
            if not is_legal_name(name):
                raise PipelineError(
                    f"{topic} would be called {name!r}, which is no topic's name: give letters, digits, . _ and -"
                )
            sources[name].append(topic)
        if twice := next((name for name, topics in sources.items() if len(topics) > 1), None):
            raise PipelineError(f"{' and '.join(sources[twice])} would both be called {twice}: map them apart")
        return names

    def check_mapped(self, topics: Iterable[str], where: str) -> None:
        """Raise PipelineError if a mapped topic is not among *topics*; *where* begins the sentence ("the archive has")."""
        if missing := sorted(self.mapped.keys() - set(topics)):
            raise PipelineError(f"{where} no topic {missing[0]}, which --map names: correct it, or leave it out")
