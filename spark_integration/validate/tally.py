"""What the records of a batch, or of a run, come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from spark_integration.validate.decoding import DEAD, DRIFT, NULLS, ROWS
from spark_integration.validate.drift import that_count


@dataclass
class Counts:
    """Rows, dead letters by reason, and differences from the schema by path."""

    rows: int = 0
    dead: Counter[str] = field(default_factory=Counter)
    drift: Counter[str] = field(default_factory=Counter)

    @property
    def good(self) -> int:
        """Rows that are what the schema says."""
        return self.rows - self.dead.total()

    def add(self, other: Counts) -> None:
        """Add another batch."""
        self.rows += other.rows
        self.dead.update(other.dead)
        self.drift.update(other.drift)


def count(decoded: DataFrame) -> Counts:
    """Add up what `decode` has counted."""
    entries = decoded.where("tally is not null").select(sql.explode("tally").alias("what", "count"))
    rows = entries.groupBy("what").agg(sql.sum("count").alias("count")).collect()
    return counts_of({row["what"]: row["count"] for row in rows})


def counts_of(tally: Mapping[str, int]) -> Counts:
    """Read the keys of a tally."""
    dead, drift = (_with_prefix(tally, prefix) for prefix in (DEAD, DRIFT))
    rows = tally.get(ROWS, 0)
    decoded = rows - tally.get(NULLS, 0) - sum(dead.values())
    return Counts(rows, Counter(dead), Counter(that_count(drift, decoded)))


def _with_prefix(tally: Mapping[str, int], prefix: str) -> dict[str, int]:
    return {what.removeprefix(prefix): count for what, count in tally.items() if what.startswith(prefix)}
