"""Where the records of a batch lie."""

from __future__ import annotations

from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkacompat.wire.primitives import MalformedError
from kafkacompat.wire.record_batch import HEADER_SIZE, NewRecord, build_batch, read_header, read_records
from kafkacompat.wire.record_slices import TURN_RECORDS, moved_record, slice_in_turns, timestamp_delta
from kafkacompat.wire.record_walk import RecordSlice
from tests.wire.conftest import find_form

sized = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.text(max_size=5), sized), max_size=2)
record = st.tuples(st.integers(0, 2**40), sized, sized, headers)


def slice_all(body: bytes, count: int) -> list[RecordSlice]:
    turns = list(slice_in_turns(body, count))
    assert all(len(turn) == TURN_RECORDS for turn in turns[:-1])
    return [record_slice for turn in turns for record_slice in turn]


@given(st.lists(record, min_size=1, max_size=200))
def test_every_record_lies_where_it_was_written(records: list[NewRecord]) -> None:
    body = build_batch(records)[HEADER_SIZE:]
    slices = slice_all(body, len(records))
    assert [(delta, key, has_value) for _, _, delta, key, has_value in slices] == [
        (index, key, value is not None) for index, (_, key, value, _) in enumerate(records)
    ]
    assert b"".join(body[start:end] for start, end, *_ in slices) == body
    base = records[0][0]
    assert [base + timestamp_delta(body, start) for start, *_ in slices] == [timestamp for timestamp, *_ in records]


def test_a_batch_of_several_turns() -> None:
    count = 2 * TURN_RECORDS + 1
    body = build_batch([(0, b"%d" % number, b"v", []) for number in range(count)])[HEADER_SIZE:]
    assert [key for _, _, _, key, _ in slice_all(body, count)] == [b"%d" % number for number in range(count)]
    assert slice_all(b"", 0) == []


Outcome: TypeAlias = "tuple[list[RecordSlice], int] | str"


def slice_in(form: str, data: bytes, count: int) -> Outcome:
    try:
        sliced: Outcome = find_form(form).slice_records(data, 0, count)
    except MalformedError as problem:
        return str(problem)
    return sliced


@given(st.lists(record, min_size=1, max_size=20), st.data())
def test_both_forms_agree_on_damaged_records(records: list[NewRecord], data: st.DataObject) -> None:
    body = bytearray(build_batch(records)[HEADER_SIZE:])
    for _ in range(data.draw(st.integers(0, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    count = len(records) + data.draw(st.integers(-1, 1))
    assert slice_in("plain", bytes(body), count) == slice_in("compiled", bytes(body), count)


@given(st.binary(max_size=60), st.integers(0, 4))
def test_both_forms_agree_on_any_bytes(data: bytes, count: int) -> None:
    assert slice_in("plain", data, count) == slice_in("compiled", data, count)


@given(st.lists(record, min_size=1, max_size=5), st.integers(-(2**41), 2**41))
def test_a_moved_record_has_another_timestamp_and_nothing_else(records: list[NewRecord], shift_ms: int) -> None:
    batch = build_batch(records)
    body = batch[HEADER_SIZE:]
    moved = b"".join(moved_record(body, start, end, shift_ms) for start, end, *_ in slice_all(body, len(records)))
    header = read_header(batch)
    size = HEADER_SIZE - 12 + len(moved)
    again = batch[:8] + size.to_bytes(4, "big") + batch[12:HEADER_SIZE] + moved
    expected = [original._replace(timestamp=original.timestamp + shift_ms) for original in read_records(batch)]
    assert list(read_records(again)) == expected
    assert header.record_count == len(expected)


@given(st.lists(record, min_size=1, max_size=5), st.data())
def test_cut_records_are_refused(records: list[NewRecord], data: st.DataObject) -> None:
    body = build_batch(records)[HEADER_SIZE:]
    size = data.draw(st.integers(0, len(body) - 1))
    with pytest.raises(MalformedError):
        slice_all(body[:size], len(records))
    with pytest.raises(MalformedError):
        slice_all(body + b"\0", len(records))
