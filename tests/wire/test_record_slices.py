"""Where the records of a batch lie."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkacompat.wire.primitives import MalformedError
from kafkacompat.wire.record_batch import HEADER_SIZE, NewRecord, build_batch, read_header, read_records
from kafkacompat.wire.record_slices import moved_record, record_slices, timestamp_delta

sized = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.text(max_size=5), sized), max_size=2)
record = st.tuples(st.integers(0, 2**40), sized, sized, headers)


@given(st.lists(record, min_size=1, max_size=200))
def test_every_record_lies_where_it_was_written(records: list[NewRecord]) -> None:
    body = build_batch(records)[HEADER_SIZE:]
    found = list(record_slices(body, len(records)))
    assert [(delta, key, has_value) for _, _, delta, key, has_value in found] == [
        (index, key, value is not None) for index, (_, key, value, _) in enumerate(records)
    ]
    assert b"".join(body[start:end] for start, end, *_ in found) == body
    base = records[0][0]
    assert [base + timestamp_delta(body, each[0]) for each in found] == [each[0] for each in records]


@given(st.lists(record, min_size=1, max_size=5), st.integers(-(2**41), 2**41))
def test_a_moved_record_has_another_timestamp_and_nothing_else(records: list[NewRecord], shift_ms: int) -> None:
    batch = build_batch(records)
    body = batch[HEADER_SIZE:]
    moved = b"".join(moved_record(body, start, end, shift_ms) for start, end, *_ in record_slices(body, len(records)))
    header = read_header(batch)
    size = HEADER_SIZE - 12 + len(moved)
    again = batch[:8] + size.to_bytes(4, "big") + batch[12:HEADER_SIZE] + moved
    expected = [each._replace(timestamp=each.timestamp + shift_ms) for each in read_records(batch)]
    assert list(read_records(again)) == expected
    assert header.record_count == len(expected)


@given(st.lists(record, min_size=1, max_size=5), st.data())
def test_what_is_cut_off_is_refused(records: list[NewRecord], data: st.DataObject) -> None:
    body = build_batch(records)[HEADER_SIZE:]
    size = data.draw(st.integers(0, len(body) - 1))
    with pytest.raises(MalformedError):
        list(record_slices(body[:size], len(records)))
    with pytest.raises(MalformedError):
        list(record_slices(body + b"\0", len(records)))
