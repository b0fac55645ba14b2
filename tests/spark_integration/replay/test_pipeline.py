"""The selection of a replay, and its pace."""

from __future__ import annotations

import pytest

from spark_integration.errors import PipelineError
from spark_integration.replay.pace import BlockSpan, block_spans, paced_slices
from spark_integration.replay.settings import ReplaySelection, parse_time
from spark_integration.topics.offsets import TopicPartition


class Clock:
    """A clock that advances while somebody waits, and in the work between."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        return False


def test_slices_come_a_second_after_each_other_at_the_earliest() -> None:
    clock = Clock()
    begun = []
    for number, piece in enumerate(paced_slices(25, 10, clock.wait, clock)):
        begun.append((clock.now, piece))
        clock.now += (0.2, 3.0, 0.0)[number]
    assert begun == [(100.0, (0, 10)), (101.0, (10, 20)), (104.0, (20, 25))]


def test_no_slice_follows_a_stop() -> None:
    answers = iter([False, True])
    assert list(paced_slices(100, 10, lambda _: next(answers), Clock())) == [(0, 10)]


@pytest.mark.parametrize(
    ("first", "end", "spans"),
    [
        (0, 2, [BlockSpan(0, 0, 1)]),
        (2, 3, [BlockSpan(0, 2, 2)]),
        (2, 7, [BlockSpan(0, 2, 2), BlockSpan(2, 0, 2), BlockSpan(3, 0, 0)]),
        (7, 9, [BlockSpan(3, 1, 2)]),
    ],
)
def test_where_a_slice_lies(first: int, end: int, spans: list[BlockSpan]) -> None:
    assert block_spans([3, 0, 3, 3], first, end) == spans


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1700000000123", 1_700_000_000_123),
        ("2023-11-14T22:13:20", 1_700_000_000_000),
        ("2023-11-14T23:13:20.500+01:00", 1_700_000_000_500),
        ("2023-11-14", 1_699_920_000_000),
    ],
)
def test_times(text: str, milliseconds: int) -> None:
    assert parse_time(text) == milliseconds


def test_a_bad_time_is_refused() -> None:
    with pytest.raises(PipelineError, match=r"^'yesterday' is no time"):
        parse_time("yesterday")


def test_topics_that_the_archive_lacks() -> None:
    selection = ReplaySelection(("a",), {TopicPartition("b", 0): 1}, {TopicPartition("c", 0): 1})
    selection.check(["a", "b", "c", "d"], "x")
    with pytest.raises(PipelineError, match=r"^the archive in x has no topic c"):
        selection.check(["a", "b"], "x")
