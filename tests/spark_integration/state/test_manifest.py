"""Ranges joined and subtracted, commits written and read back, and missing commits."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from spark_integration.errors import PipelineError
from spark_integration.state.manifest import (
    ArchiveCommit,
    ArchiveDescription,
    ArchiveManifest,
    DataFile,
    OffsetRange,
    known_topic_ids,
    order_commits,
    parse_commit,
)
from spark_integration.topics.offsets import RecordSpan, join_intervals, subtract_intervals

RANGE = OffsetRange("t", 0, "id", 0, 10, 8, 1, 9)
FILE = DataFile("topic=t/a.parquet", 100, (RecordSpan("t", 0, 1, 9, 8),))
COMMIT = ArchiveCommit(1, "batch", "run", 5, "query", 0, (RANGE,), (FILE,), (), ("old",))


@pytest.mark.parametrize(
    ("covered", "left"),
    [
        ([], [(10, 20)]),
        ([(0, 10), (20, 30)], [(10, 20)]),
        ([(10, 20)], []),
        ([(0, 30)], []),
        ([(0, 12), (14, 15), (18, 40)], [(12, 14), (15, 18)]),
        ([(15, 20)], [(10, 15)]),
    ],
)
def test_a_difference_of_intervals(covered: list[tuple[int, int]], left: list[tuple[int, int]]) -> None:
    assert subtract_intervals((10, 20), covered) == left


def test_intervals_are_joined_where_they_touch_or_overlap() -> None:
    assert join_intervals([(5, 7), (0, 2), (2, 4), (6, 6), (9, 12), (10, 11)]) == [(0, 4), (5, 7), (9, 12)]


def test_a_commit_comes_back_as_it_was_written() -> None:
    assert parse_commit(COMMIT.as_json()) == COMMIT


@pytest.mark.parametrize("text", ["", "{}", COMMIT.as_json()[:-2], json.dumps({"version": 2}), "[]"])
def test_a_damaged_commit_is_refused(text: str) -> None:
    with pytest.raises(PipelineError, match="damaged"):
        parse_commit(text)


def make_commits(*numbers: int, kind: str = "batch") -> list[ArchiveCommit]:
    return [replace(COMMIT, number=number, kind=kind) for number in numbers]


def test_commits_count_in_their_order() -> None:
    assert [commit.number for commit in order_commits(make_commits(3, 1, 2), "p")] == [1, 2, 3]


@pytest.mark.parametrize("numbers", [(2, 3), (1, 3)])
def test_a_missing_commit_is_refused(numbers: tuple[int, ...]) -> None:
    with pytest.raises(PipelineError, match="lacks commit"):
        order_commits(make_commits(*numbers), "p")


def test_before_a_compaction_nothing_counts_or_is_missed() -> None:
    commits = [*make_commits(2, 4, 6), *make_commits(5, kind="compact")]
    assert [commit.number for commit in order_commits(commits, "p")] == [5, 6]


def test_an_unknown_topic_id_is_left_out() -> None:
    ranges = [RANGE, RANGE._replace(topic_id=""), RANGE._replace(topic="u", topic_id="AAAAAAAAAAAAAAAAAAAAAA")]
    assert known_topic_ids(ranges) == {"t": "id"}


def test_the_manifest_sums_its_commits() -> None:
    second = replace(
        COMMIT, number=2, query_id=None, queries=("other",), ranges=(RANGE._replace(from_offset=20, until_offset=30),)
    )
    both = ArchiveManifest(ArchiveDescription("parquet", ("topic",), "x"), (COMMIT, second))
    assert both.covered == {("t", 0): [(0, 10), (20, 30)]}
    assert both.ends() == {("t", 0): 30}
    assert both.records == 16
    assert both.queries == {"query", "other"}
    assert both.topic_ids == {"t": "id"}
