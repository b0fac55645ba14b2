"""Where a run without a checkpoint begins, and its warnings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

import pytest

from spark_integration.archive.checks import concurrent_writer_warning, continue_after_archived, source_partitions
from spark_integration.state.manifest import ArchiveCommit, ArchiveDescription, ArchiveManifest, OffsetRange
from spark_integration.topics.offsets import TopicPartition

ONE, OTHER, NEW = (TopicPartition("t", number) for number in range(3))


class Topics:
    """A cluster with one topic of three partitions."""

    def __init__(self, earliest: Mapping[TopicPartition, int]) -> None:
        self.earliest = {ONE: 0, OTHER: 0, NEW: 0, **earliest}

    def partitions(self, names: Iterable[str]) -> list[TopicPartition]:
        return [ONE, OTHER, NEW]

    def offsets(self, partitions: Iterable[TopicPartition], spec: Any) -> dict[TopicPartition, int]:
        return {partition: self.earliest[partition] for partition in partitions}


def make_manifest(*intervals: tuple[TopicPartition, int, int]) -> ArchiveManifest:
    ranges = tuple(OffsetRange(*partition, "id", first, until, 0, None, None) for partition, first, until in intervals)
    return ArchiveManifest(
        ArchiveDescription("parquet", (), "x"), (ArchiveCommit(1, "batch", "run", 0, "query", 0, ranges),)
    )


def find_starting_offsets(
    source: Mapping[str, str], archived: ArchiveManifest, earliest: Mapping[TopicPartition, int]
) -> Any:
    """Return the offsets to begin at, by the number of the partition."""
    cluster = cast(Any, Topics(earliest))
    options = continue_after_archived(cluster, source, source_partitions(cluster, source, ["t"]), archived)
    return json.loads(options["startingOffsets"])["t"]


EARLIEST = {"startingOffsets": "earliest", "subscribe": "t"}


@pytest.mark.parametrize(
    ("earliest", "first"),
    [(0, -2), (9, -2), (10, 20), (19, 20), (20, -2), (25, -2), (30, 40), (40, -2)],
)
def test_the_earliest_offset_that_the_archive_lacks(earliest: int, first: int) -> None:
    """Gaps between the intervals are read, and nothing before the interval that holds the earliest offset."""
    archived = make_manifest((ONE, 10, 20), (ONE, 30, 40), (OTHER, 0, 7))
    assert find_starting_offsets(EARLIEST, archived, {ONE: earliest}) == {"0": first, "1": 7, "2": -2}


def test_the_latest_offset_is_where_the_archive_ends() -> None:
    archived = make_manifest((ONE, 10, 20), (ONE, 30, 40))
    assert find_starting_offsets({"subscribe": "t"}, archived, {}) == {"0": 40, "1": -1, "2": -1}


@pytest.mark.parametrize(("offsets", "first"), [("latest", 40), ("earliest", 40)])
def test_of_assigned_partitions_no_others_are_named(offsets: str, first: int) -> None:
    """Spark rejects offsets that name other partitions."""
    source = {"assign": '{"t": [0]}', "startingOffsets": offsets}
    assert find_starting_offsets(source, make_manifest((ONE, 0, 40), (OTHER, 0, 5)), {}) == {"0": first}


@pytest.mark.parametrize("offsets", ["earliest", "latest", '{"t":{"0":5,"1":5,"2":5}}'])
def test_without_an_archive_starting_offsets_count(offsets: str) -> None:
    source = {"subscribe": "t", "startingOffsets": offsets}
    cluster = cast(Any, Topics({}))
    assert continue_after_archived(cluster, source, [ONE, OTHER, NEW], make_manifest()) == source


def test_given_offsets_override_the_archives_end() -> None:
    source = {"subscribe": "t", "startingOffsets": '{"t":{"0":5,"1":5,"2":5}}'}
    assert (
        continue_after_archived(cast(Any, Topics({})), source, [ONE, OTHER, NEW], make_manifest((ONE, 0, 40))) == source
    )


def test_an_archive_on_s3_gets_a_warning_about_renames() -> None:
    assert "S3 cannot rename" in str(concurrent_writer_warning("s3a://bucket/orders"))
    assert [concurrent_writer_warning(uri) for uri in ("file:/data", "hdfs://h/data", "abfs://a/s3")] == [None] * 3
