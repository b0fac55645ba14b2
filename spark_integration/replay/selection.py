"""The records of an archive that a selection means."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from spark_integration.replay.settings import ReplaySelection
from spark_integration.topics.offsets import TopicPartition


def select_records(archive: DataFrame, selection: ReplaySelection) -> DataFrame:
    """Return the records of *archive* that *selection* means."""
    conditions = [*_topic_conditions(selection), *_offset_conditions(selection), *_time_conditions(selection)]
    return archive.where(reduce(Column.__and__, conditions)) if conditions else archive


def _topic_conditions(selection: ReplaySelection) -> list[Column]:
    return [sql.col("topic").isin(*selection.topics)] if selection.topics else []


def _offset_conditions(selection: ReplaySelection) -> list[Column]:
    offset = sql.col("offset")
    starting, ending = selection.starting_offsets.items(), selection.ending_offsets.items()
    begins = [~_is_in(partition) | (offset >= first) for partition, first in starting if first >= 0]
    ends = [~_is_in(partition) | (offset < end) for partition, end in ending if end >= 0]
    return begins + ends


def _time_conditions(selection: ReplaySelection) -> list[Column]:
    time = sql.col("timestamp")
    start_ms, end_ms = selection.starting_timestamp_ms, selection.ending_timestamp_ms
    begins = [time >= _make_timestamp(start_ms)] if start_ms is not None else []
    ends = [time < _make_timestamp(end_ms)] if end_ms is not None else []
    return begins + ends


def _is_in(partition: TopicPartition) -> Column:
    return (sql.col("topic") == partition.topic) & (sql.col("partition") == partition.partition)


def _make_timestamp(ms: int) -> Column:
    return sql.timestamp_millis(sql.lit(ms))
