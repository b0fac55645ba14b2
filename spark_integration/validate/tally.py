"""The counts of a batch or a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from spark_integration.validate.decoding import DEAD, DRIFT, HAS_FIELD, REFUSED, ROWS
from spark_integration.validate.drift import drop_optional_fields, shorten_difference


@dataclass
class BatchCounts:
    """Rows, dead letters by reason, and differences from the schema by path.

    *refused* are ids of schemas that the registry lacks or that cannot be read, with the reason.
    """

    rows: int = 0
    dead: Counter[str] = field(default_factory=Counter)
    drift: Counter[str] = field(default_factory=Counter)
    refused: Mapping[int, str] = field(default_factory=dict)

    @property
    def good(self) -> int:
        """Rows that fit the schema."""
        return self.rows - self.dead.total()

    def add(self, batch: BatchCounts) -> list[str]:
        """Add another batch; return the differences that are new. In total there are not many."""
        before = set(self.drift)
        self.rows += batch.rows
        self.dead.update(batch.dead)
        for difference, count in batch.drift.most_common():
            self.drift[shorten_difference(difference, set(self.drift))] += count
        return [difference for difference in self.drift if difference not in before]


def sum_tallies(decoded: DataFrame) -> BatchCounts:
    """Return the sum of the tallies in frames of `decode_records`."""
    entries = decoded.where("tally is not null").select(sql.explode("tally").alias("what", "count"))
    rows = entries.groupBy("what").agg(sql.sum("count").alias("count")).collect()
    return parse_tally({row["what"]: row["count"] for row in rows})


def parse_tally(tally: Mapping[str, int]) -> BatchCounts:
    """Parse the keys of a tally."""
    dead, drift, has, refused = (_with_prefix(tally, prefix) for prefix in (DEAD, DRIFT, HAS_FIELD, REFUSED))
    reasons = dict(entry.split(" ") for entry in refused)
    return BatchCounts(
        tally.get(ROWS, 0),
        Counter(dead),
        Counter(drop_optional_fields(drift, set(has))),
        {int(schema_id): reason for schema_id, reason in reasons.items()},
    )


def _with_prefix(tally: Mapping[str, int], prefix: str) -> dict[str, int]:
    return {key.removeprefix(prefix): count for key, count in tally.items() if key.startswith(prefix)}
