"""What a batch commits: a range for each interval that the archive lacks, by as many tasks as there are cores then."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from spark_integration.archive.batches import ArchiveBatchWriter, check_topic_ids
from spark_integration.errors import PipelineError
from spark_integration.state.manifest import ArchiveCommit, OffsetRange
from spark_integration.topics.offsets import TopicPartition

ONE, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)
ZERO_ID = "AAAAAAAAAAAAAAAAAAAAAA"


class Frame:
    """A frame that records the number of tasks it is brought into."""

    def __init__(self) -> None:
        self.tasks: list[int] = []

    def coalesce(self, tasks: int) -> Frame:
        self.tasks.append(tasks)
        return self


class Committed:
    """A ledger that accepts everything."""

    topic_ids: dict[str, str] = {}

    def draft(self, kind: str, query: str, batch: int, ranges: tuple[OffsetRange, ...]) -> ArchiveCommit:
        return ArchiveCommit(1, kind, "run", 0, query, batch, ranges)

    def commit(self, frame: Any, draft: ArchiveCommit, check: Any) -> ArchiveCommit:
        return draft


def make_batches(tasks: int = 0) -> tuple[ArchiveBatchWriter, Any]:
    spark = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=2))
    cluster = SimpleNamespace(topics=lambda names: {name: SimpleNamespace(topic_id="id") for name in names})
    made = ArchiveBatchWriter(
        cast(Any, spark), cast(Any, cluster), cast(Any, Committed()), "checkpoint", tasks, lambda: None
    )
    return made, spark.sparkContext


def test_as_many_tasks_as_there_are_cores_when_a_batch_is_written() -> None:
    """Executors of a cluster register after the query has started."""
    some, context = make_batches()
    frame = Frame()
    some._commit(cast(Any, frame), "query", 0, ())
    context.defaultParallelism = 16
    some._commit(cast(Any, frame), "query", 1, ())
    assert frame.tasks == [2, 16]


def test_as_many_tasks_as_were_asked_for() -> None:
    frame = Frame()
    make_batches(tasks=3)[0]._commit(cast(Any, frame), "query", 0, ())
    assert frame.tasks == [3]


def test_a_range_for_each_interval_that_is_missing() -> None:
    ranges = make_batches()[0]._list_ranges({OTHER: [(5, 6)], ONE: [(0, 10), (30, 40)]})
    assert [
        (offset_range.topic_partition, offset_range.from_offset, offset_range.until_offset) for offset_range in ranges
    ] == [
        (ONE, 0, 10),
        (ONE, 30, 40),
        (OTHER, 5, 6),
    ]


def test_a_recreated_topic_is_refused() -> None:
    check_topic_ids({"t": "a"}, {"t": "a", "new": "b"})
    with pytest.raises(PipelineError, match="recreated"):
        check_topic_ids({"t": "a"}, {"t": "b"})


@pytest.mark.parametrize("unknown", ["", ZERO_ID])
def test_a_topic_whose_id_is_not_known_is_not_another_one(unknown: str) -> None:
    check_topic_ids({"t": unknown}, {"t": "a"})
    check_topic_ids({"t": "a"}, {"t": unknown})
