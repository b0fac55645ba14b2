"""How readings of nasty topics are judged."""

from __future__ import annotations

import pytest

from compat_tests.matrix.records import Record
from compat_tests.nasty.judging import compare
from kafkacompat.testing.nasty import ExpectedRecord, MissingOffsets

EXPECTED = [ExpectedRecord(0, offset, 1000 + offset, b"k", b"v%d" % offset) for offset in (0, 2, 5)]
READ = [Record(0, offset, "k", f"v{offset}", 1000 + offset) for offset in (0, 2, 5)]


def test_what_is_read_as_expected_has_no_problem() -> None:
    assert compare(READ, EXPECTED, has_timestamps=True) == ""


def test_nulls_are_read_as_some_clients_report_them() -> None:
    expected = [ExpectedRecord(0, 0, -1, None, None)]
    for content, timestamp in ((None, None), ("", -1)):
        assert compare([Record(0, 0, content, content, timestamp)], expected, has_timestamps=True) == ""


@pytest.mark.parametrize(
    ("read", "words"),
    [
        ([READ[0], READ[2]], "1 record missing, the first at offset 2"),
        ([*READ, Record(1, 7, "k", "v7", 0)], "1 record too many, the first at offset 7 of partition 1"),
        ([*READ, *READ], "3 records twice, the first at offset 0; offsets of partition 0 do not ascend"),
        ([READ[1], READ[0], READ[2]], "offsets of partition 0 do not ascend"),
        ([*READ[:2], READ[2]._replace(value="x")], "1 record with other contents, the first at offset 5"),
        (
            [*READ[:2], READ[2]._replace(timestamp=7)],
            "1 record with another timestamp: 7 instead of 1005 at offset 5",
        ),
    ],
)
def test_a_difference_is_told_in_words(read: list[Record], words: str) -> None:
    assert compare(read, EXPECTED, has_timestamps=True) == words


def test_the_reason_of_a_record_too_many_is_named() -> None:
    missing = [MissingOffsets(0, 6, 6, "commit marker")]
    read = [*READ, Record(0, 6, "", "", 0)]
    words = "1 record too many, the first at offset 6 (commit marker)"
    assert compare(read, EXPECTED, has_timestamps=True, missing=missing) == words


def test_timestamps_count_only_for_clients_that_have_them() -> None:
    assert compare([record._replace(timestamp=None) for record in READ], EXPECTED, has_timestamps=False) == ""
