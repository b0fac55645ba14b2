"""Which records of an archive a replay writes, and into which partitions. Imports no pyspark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone

from spark_integration.errors import PipelineError
from spark_integration.topics.offsets import TopicPartition

# Partitioners: records keep their partition, or get that of their key's hash.
KEEP, BY_KEY = "keep", "key"


@dataclass(frozen=True)
class ReplaySelection:
    """The records of *topics* (None: all) within ranges; the end of a range is not part of it.

    Offsets bound the partitions that they name; negative offsets bound nothing, as in Spark. Times are the records' own,
    in milliseconds since 1970.
    """

    topics: tuple[str, ...] | None = None
    starting_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    ending_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    starting_timestamp_ms: int | None = None
    ending_timestamp_ms: int | None = None

    def named_topics(self) -> set[str]:
        """Return every topic that the selection names."""
        offsets = (*self.starting_offsets, *self.ending_offsets)
        return {*(self.topics or ()), *(partition.topic for partition in offsets)}

    def check(self, archived: Iterable[str], path: str) -> None:
        """Raise PipelineError for a topic that is not among those *archived* in the archive at *path*."""
        if missing := sorted(self.named_topics() - set(archived)):
            raise PipelineError(f"the archive in {path} has no topic {missing[0]}: name one that it has")


def parse_time(text: str) -> int:
    """Return milliseconds since 1970 of such a number, or of an ISO 8601 time (UTC by default); raises PipelineError."""
    if text.isdecimal():
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError as problem:
        raise PipelineError(f"{text!r} is no time: give milliseconds since 1970, or 2026-11-22T03:45:00") from problem
    return round((time if time.tzinfo else time.replace(tzinfo=timezone.utc)).timestamp() * 1000)
