"""Offsets without a record, explained by the batches in a broker's log."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from compat_tests.batches import build, patch_header
from spark_integration.audit.holes import COMPACTED, MARKER, UNEXAMINED, UNEXPLAINED, OffsetHole, explain_holes
from spark_integration.audit.log_batches import LogBatch, parse_batches
from spark_integration.topics.offsets import TopicPartition

# Records 0-9 without 4, a marker at 10, records 11-12, nothing at 13-15, a marker at 16, records 17-20.
LOG = [
    LogBatch(0, 9, False),
    LogBatch(10, 10, True),
    LogBatch(11, 12, False),
    LogBatch(16, 16, True),
    LogBatch(17, 20, False),
]


class Log:
    """A log that returns this many batches at once, and counts the requests."""

    def __init__(self, batches: Collection[LogBatch] | None, at_once: int) -> None:
        self.batches = batches
        self.at_once = at_once
        self.asked: list[int] = []

    def __call__(self, partition: TopicPartition, offset: int) -> list[LogBatch] | None:
        self.asked.append(offset)
        if self.batches is None:
            return None
        return [batch for batch in self.batches if batch.last >= offset][: self.at_once]


def list_parts(log: Log, *holes: tuple[int, int], compacted: bool = False) -> list[tuple[int, int, str]]:
    given = [OffsetHole("topic", 0, first, last) for first, last in holes]
    parts = explain_holes(given, log, {"topic"} if compacted else set())
    return [(part.first, part.last, part.kind) for part in parts]


@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_each_offset_of_a_hole_is_explained(at_once: int) -> None:
    parts = list_parts(Log(LOG, at_once), (4, 4), (10, 10), (13, 16))
    assert parts == [(4, 4, COMPACTED), (10, 10, MARKER), (13, 15, UNEXPLAINED), (16, 16, MARKER)]


def test_a_compacted_topic_may_lack_whole_batches() -> None:
    assert list_parts(Log(LOG, 5), (13, 16), compacted=True) == [(13, 15, COMPACTED), (16, 16, MARKER)]


def test_the_log_is_asked_once_for_holes_that_lie_together() -> None:
    log = Log(LOG, 5)
    list_parts(log, (4, 4), (10, 10), (13, 16))
    assert log.asked == [4]


def test_batches_of_a_partition_do_not_explain_another() -> None:
    log = Log(LOG, 5)
    holes = [OffsetHole("topic", 0, 10, 10), OffsetHole("topic", 1, 10, 10)]
    assert [part.kind for part in explain_holes(holes, log, ())] == [MARKER, MARKER]
    assert log.asked == [10, 10]


@pytest.mark.parametrize("batches", [None, []], ids=["refused", "nothing"])
def test_an_unreadable_log_leaves_holes_unexamined(batches: list[LogBatch] | None) -> None:
    assert list_parts(Log(batches, 5), (4, 5), (10, 10)) == [(4, 5, UNEXAMINED), (10, 10, UNEXAMINED)]


def test_headers_of_batches() -> None:
    """Two batches of records, a control batch, and one that is cut off after its header."""
    first, second = build([b"a", b"b", b"c"]), patch_header(build([b"d"]), 0, "q", 3)
    control = patch_header(patch_header(build([b"e"]), 0, "q", 4), 21, "h", 0x30)
    cut_off = patch_header(build([b"f", b"g"]), 0, "q", 5)[:40]
    batches = list(parse_batches(first + second + control + cut_off))
    assert batches == [LogBatch(0, 2, False), LogBatch(3, 3, False), LogBatch(4, 4, True), LogBatch(5, 6, False)]


def test_old_message_sets_tell_nothing() -> None:
    assert list(parse_batches(patch_header(build([b"a"]), 16, "b", 1))) == []
