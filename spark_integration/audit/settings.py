"""How an audit judges records, and where it finds their producer, sequence and event time. Imports no pyspark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_integration.errors import PipelineError

# How many milliseconds a number of that unit is.
TIME_UNITS_MS: Mapping[str, float] = {"s": 1000.0, "ms": 1.0, "us": 0.001, "ns": 0.000001}
TOPIC_SCOPE, PARTITION_SCOPE = "topic", "partition"
# The columns that identify whose sequence it is.
SCOPES = {TOPIC_SCOPE: ("topic", "producer"), PARTITION_SCOPE: ("topic", "partition", "producer")}
PERCENTILES: Mapping[str, float] = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
HEADER = "header:"
NOTHING_TO_AUDIT = "there is nothing to audit: give --bootstrap-server and topics, or the --path of an archive"
PLACES = "$.path (JSON in the value), key, key:$.path or header:NAME"


@dataclass(frozen=True)
class AuditFields:
    """The places of a record's fields, each ``$.path`` (JSON in the value), ``key``, ``key:$.path`` or ``header:NAME``.

    Without a *sequence* the audit finds no gaps, duplicates and inversions. Without a *producer* all records of a topic
    count as those of one producer. An *event_time* is a number of *event_time_unit* since 1970, or ISO 8601; without
    one it is the record's own CreateTime. *first_sequence* is the number with which every producer begins, if it is
    known.
    """

    producer: str | None = None
    sequence: str | None = None
    event_time: str | None = None
    event_time_unit: str = "ms"
    first_sequence: int | None = None

    def __post_init__(self) -> None:
        for place in (self.producer, self.sequence, self.event_time):
            if place is not None:
                check_place(place)
        if self.event_time_unit not in TIME_UNITS_MS:
            raise PipelineError(f"{self.event_time_unit!r} is no unit of time: give one of {', '.join(TIME_UNITS_MS)}")


@dataclass(frozen=True)
class AuditSettings:
    """How records are judged.

    *sequence_scope*: whether a producer numbers its records by ``topic`` or by ``partition``. *limit*: how many findings
    of a kind are kept in detail. *examine*: how many holes in topics' offsets are looked up in the broker's log.
    """

    fields: AuditFields = field(default_factory=AuditFields)
    sequence_scope: str = TOPIC_SCOPE
    limit: int = 20
    examine: int = 100_000


def check_place(place: str) -> None:
    """Raise PipelineError if *place* names no place in a record."""
    path = place.removeprefix("key:")
    if place != "key" and not path.startswith("$") and not (path.startswith(HEADER) and len(path) > len(HEADER)):
        raise PipelineError(f"{place!r} is no place in a record: give {PLACES}")
