"""The computations of an archive: missing parts of a batch, files to merge, sizes."""

from __future__ import annotations

import pytest

from spark_integration.archive.batches import offsets_to_read
from spark_integration.archive.compaction import files_to_merge, join_ranges, sum_spans
from spark_integration.archive.parquet import count_ranges
from spark_integration.archive.settings import check_partition_by
from spark_integration.command_line.archive import parse_size
from spark_integration.errors import PipelineError
from spark_integration.state.manifest import DataFile, OffsetRange
from spark_integration.topics.intervals import covering_condition
from spark_integration.topics.offsets import RecordSpan, TopicPartition, intersect_intervals

ONE, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


def test_a_batch_reads_moved_offsets_and_new_partitions_from_their_beginning() -> None:
    assert offsets_to_read({ONE: 5, OTHER: -2}, {ONE: 5, OTHER: 3}) == {OTHER: (0, 3)}


def test_an_intersection_of_intervals() -> None:
    assert intersect_intervals((10, 20), [(0, 12), (14, 15), (19, 40), (50, 60)]) == [(10, 12), (14, 15), (19, 20)]


def make_file(path: str, size: int, *spans: RecordSpan) -> DataFile:
    return DataFile(path, size, spans)


def test_folders_with_enough_small_files_are_due() -> None:
    files = [make_file(f"a/{number}", 40) for number in range(3)] + [
        make_file("a/large", 50),
        make_file("b/1", 1),
        make_file("b/2", 1),
    ]
    assert [file.path for file in files_to_merge(files, 3, 100)] == ["a/0", "a/1", "a/2"]
    assert files_to_merge([make_file("b/1", 1)], 1, 100) == []


def test_spans_of_files_are_summed() -> None:
    files = [
        make_file("a", 1, RecordSpan("t", 0, 5, 9, 5), RecordSpan("t", 1, 0, 0, 1)),
        make_file("b", 1, RecordSpan("t", 0, 1, 3, 2)),
    ]
    assert sum_spans(files) == {ONE: RecordSpan("t", 0, 1, 9, 7), OTHER: RecordSpan("t", 1, 0, 0, 1)}


def test_ranges_count_the_records_of_files() -> None:
    empty = OffsetRange("t", 2, "id", 0, 3, 0, None, None)
    files = [
        make_file("a", 1, RecordSpan("t", 0, 5, 9, 5), RecordSpan("t", 0, 30, 31, 2)),
        make_file("b", 1, RecordSpan("t", 0, 1, 3, 2)),
    ]
    full = OffsetRange("t", 0, "id", 0, 12, 0, None, None)
    later = OffsetRange("t", 0, "id", 30, 40, 0, None, None)
    assert count_ranges([full, later, empty], files) == (
        full._replace(records=7, first_offset=1, last_offset=9),
        later._replace(records=2, first_offset=30, last_offset=31),
        empty,
    )


def test_ranges_that_touch_are_one() -> None:
    first = OffsetRange("t", 0, "id", 0, 10, 2, 3, 4)
    nothing = OffsetRange("t", 0, "id", 10, 20, 0, None, None)
    last = OffsetRange("t", 0, "id", 20, 30, 5, 21, 29)
    apart = OffsetRange("t", 0, "id", 40, 50, 1, 41, 41)
    assert join_ranges([apart, last, first, nothing]) == (OffsetRange("t", 0, "id", 0, 30, 7, 3, 29), apart)


@pytest.mark.parametrize("ids", [("AAAAAAAAAAAAAAAAAAAAAA", "id"), ("id", "AAAAAAAAAAAAAAAAAAAAAA"), ("id", "")])
def test_a_range_that_is_joined_keeps_the_id_that_is_known(ids: tuple[str, str]) -> None:
    ranges = [
        OffsetRange("t", 0, topic_id, start, start + 10, 0, None, None)
        for topic_id, start in zip(ids, (0, 10), strict=True)
    ]
    assert [offset_range.topic_id for offset_range in join_ranges(ranges)] == ["id"]


def test_files_are_skipped_by_topic_partition_and_offset() -> None:
    assert covering_condition({}) == "false"
    assert covering_condition(
        {ONE: [(5, 9), (20, 30)], OTHER: [(1, 7)], TopicPartition("u", 3): [(2, 4)], TopicPartition("v", 0): []}
    ) == (
        "(topic = 't' AND partition IN (0, 1) AND offset >= 1 AND offset < 30)"
        " OR (topic = 'u' AND partition IN (3) AND offset >= 2 AND offset < 4)"
    )


@pytest.mark.parametrize(("text", "size"), [("128m", 128 << 20), ("1G", 1 << 30), ("5kb", 5 << 10), ("7", 7)])
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "m", "0m", "1.5g", "12x"])
def test_a_bad_size_is_refused(text: str) -> None:
    with pytest.raises(PipelineError, match="no size"):
        parse_size(text)


def test_folders_are_named_by_few_columns() -> None:
    assert check_partition_by(["topic", "date", "topic"]) == ("topic", "date")
    with pytest.raises(PipelineError, match="'offset'"):
        check_partition_by(["offset"])
