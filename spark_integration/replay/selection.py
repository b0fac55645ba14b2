"""Which records of an archive are meant: topics, ranges of offsets, a range of time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from spark_integration.errors import PipelineError
from spark_integration.offsets import TopicPartition


@dataclass(frozen=True)
class Selection:
    """All of *topics* (None: of the archive), within ranges whose ends are not in them.

    Offsets bound the partitions that they name; negative ones bound nothing, as in Spark. Times are the records' own, in
    milliseconds since 1970.
    """

    topics: tuple[str, ...] | None = None
    starting_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    ending_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    starting_timestamp_ms: int | None = None
    ending_timestamp_ms: int | None = None

    def named(self) -> set[str]:
        """Return every topic that it names."""
        return {*(self.topics or ()), *(one.topic for one in (*self.starting_offsets, *self.ending_offsets))}

    def check(self, archived: Iterable[str], path: str) -> None:
        """Raise PipelineError for a topic that the archive does not have."""
        if missing := sorted(self.named() - set(archived)):
            raise PipelineError(f"the archive in {path} has no topic {missing[0]}: name one that it has")

    def of(self, archive: DataFrame) -> DataFrame:
        """Return the records of *archive* that are meant."""
        conditions = [*self._topics(), *self._offsets(), *self._times()]
        return archive.where(reduce(Column.__and__, conditions)) if conditions else archive

    def _topics(self) -> list[Column]:
        return [sql.col("topic").isin(*self.topics)] if self.topics else []

    def _offsets(self) -> list[Column]:
        offset = sql.col("offset")
        begins = [~_is(one) | (offset >= first) for one, first in self.starting_offsets.items() if first >= 0]
        ends = [~_is(one) | (offset < last) for one, last in self.ending_offsets.items() if last >= 0]
        return begins + ends

    def _times(self) -> list[Column]:
        time = sql.col("timestamp")
        begin, end = (_timestamp(ms) for ms in (self.starting_timestamp_ms, self.ending_timestamp_ms))
        return [*([time >= begin] if begin is not None else []), *([time < end] if end is not None else [])]


def milliseconds_of(text: str) -> int:
    """Read milliseconds since 1970, or a time of ISO 8601 (UTC unless it says otherwise); raises PipelineError."""
    if text.isdecimal():
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError as problem:
        raise PipelineError(f"{text!r} is no time: give milliseconds since 1970, or 2026-11-22T03:45:00") from problem
    return round((time if time.tzinfo else time.replace(tzinfo=timezone.utc)).timestamp() * 1000)


def _is(one: TopicPartition) -> Column:
    return (sql.col("topic") == one.topic) & (sql.col("partition") == one.partition)


def _timestamp(ms: int | None) -> Column | None:
    return None if ms is None else sql.timestamp_millis(sql.lit(ms))
