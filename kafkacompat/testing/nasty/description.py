"""What a correct consumer must see of a topic: its records, its offsets, and the offsets that are missing on purpose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

CREATE_TIME = "CreateTime"
LOG_APPEND_TIME = "LogAppendTime"

Headers: TypeAlias = "tuple[tuple[str, bytes | None], ...]"


class NastyTopicError(Exception):
    """A topic that cannot be made, or changed, as its caller wants; the text is one sentence for the caller."""


@dataclass(frozen=True, slots=True)
class ExpectedRecord:
    """A record that a consumer must receive; `timestamp` is in ms since 1970, -1 for a record that has none."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp_type: str = CREATE_TIME


@dataclass(frozen=True, slots=True)
class MissingOffsets:
    """The offsets `first` to `last` of a partition: no consumer receives a record at them.

    With `only_committed` a consumer with isolation.level=read_uncommitted receives their records.
    """

    partition: int
    first: int
    last: int
    reason: str
    only_committed: bool = False


@dataclass(frozen=True, slots=True)
class TimeLookup:
    """What ListOffsets, or offsetsForTimes, returns for a timestamp in ms: an offset; None if every record is earlier."""

    partition: int
    timestamp: int
    offset: int | None


@dataclass(frozen=True, slots=True)
class NastyTopic:
    """A topic, and what a correct consumer sees of it from the beginning to the end.

    The records are in the order of each partition's offsets. `log_start_offsets` and `end_offsets` are by partition; an end
    offset is that of the next record: the position of a consumer that has read everything. `missing` explains every offset
    between them that has no record. `max_timestamp_offsets` are the offsets of the records with the largest timestamps, by
    partition.
    """

    name: str
    read_uncommitted: tuple[ExpectedRecord, ...]
    read_committed: tuple[ExpectedRecord, ...]
    log_start_offsets: dict[int, int]
    end_offsets: dict[int, int]
    missing: tuple[MissingOffsets, ...] = ()
    lookups: tuple[TimeLookup, ...] = ()
    max_timestamp_offsets: dict[int, int] = field(default_factory=dict)

    def expected(self, *, committed: bool = False) -> tuple[ExpectedRecord, ...]:
        """Return the records of one isolation level."""
        return self.read_committed if committed else self.read_uncommitted

    def list_unexplained_offsets(self, *, committed: bool) -> list[tuple[int, int]]:
        """Return each (partition, offset) that is neither a record nor missing on purpose; a description has none."""
        explained = {(record.partition, record.offset) for record in self.expected(committed=committed)}
        for gap in self.missing:
            if committed or not gap.only_committed:
                explained |= {(gap.partition, offset) for offset in range(gap.first, gap.last + 1)}
        return [
            (partition, offset)
            for partition, start in self.log_start_offsets.items()
            for offset in range(start, self.end_offsets[partition])
            if (partition, offset) not in explained
        ]

    def without_records_before(self, offset: int, partition: int = 0) -> NastyTopic:
        """Return the description of the topic once a partition begins at *offset*."""

        def keep(records: Sequence[ExpectedRecord]) -> tuple[ExpectedRecord, ...]:
            return tuple(record for record in records if record.partition != partition or record.offset >= offset)

        return replace(
            self,
            read_uncommitted=keep(self.read_uncommitted),
            read_committed=keep(self.read_committed),
            log_start_offsets={**self.log_start_offsets, partition: offset},
            missing=tuple(gap for gap in self.missing if gap.partition != partition or gap.last >= offset),
        )


def describe_plain(
    name: str, records: Iterable[ExpectedRecord], end_offsets: dict[int, int], missing: Iterable[MissingOffsets] = ()
) -> NastyTopic:
    """Describe a topic without transactions, whose partitions begin at offset 0."""
    listed = tuple(records)
    return NastyTopic(name, listed, listed, dict.fromkeys(end_offsets, 0), end_offsets, tuple(missing))
