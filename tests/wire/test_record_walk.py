"""The compiled form of the walk against the plain one: same results, same refusals."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkacompat.wire.primitives import MalformedError, encode_varint
from kafkacompat.wire.record_batch import HEADER_SIZE, build_batch, read_header
from kafkacompat.wire.walk_form import Walk
from tests.wire.conftest import FORMS, find_walk

fuzz = settings(max_examples=300, deadline=None, database=None)

sized = st.none() | st.binary(max_size=70)
headers = st.lists(st.tuples(st.text(max_size=3), sized), max_size=3)
delta = st.sampled_from((0, 1, 63, 64, -1, -65, 8192, 2**31, -(2**40))) | st.integers(-(2**62), 2**62)
record = st.tuples(delta, sized, sized, headers)
run_of_records = st.tuples(record, st.sampled_from((1, 2, 20, 64, 65, 130)))
number = st.sampled_from((b"\0", b"\1", b"\2", b"\x7f", b"\xff", b"\x80" * 4 + b"\x70", b"\x80" * 5 + b"\0"))
change = st.tuples(st.integers(0), number, st.booleans())


@st.composite
def damaged_batches(draw: st.DrawFn) -> tuple[bytes, int]:
    """Draw the records of a batch with some bytes replaced or added, and their claimed number."""
    runs = draw(st.lists(run_of_records, min_size=1, max_size=3))
    batch = build_batch([record for record, times in runs for _ in range(times)])
    data = bytearray(batch[HEADER_SIZE:])
    for position, content, is_added in draw(st.lists(change, max_size=3)):
        at = position % (len(data) + 1)
        data[at : at if is_added else at + len(content)] = content
    return bytes(data), max(0, read_header(batch).record_count + draw(st.sampled_from((0, 0, 0, 0, -1, 1))))


def try_walk(walk: Walk, data: bytes, count: int, keys_required: bool) -> object:
    try:
        return walk(data, count, keys_required)
    except MalformedError as problem:
        return type(problem)


@fuzz
@given(damaged_batches(), st.booleans())
def test_both_forms_agree(batch: tuple[bytes, int], keys_required: bool) -> None:
    plain, compiled = (try_walk(find_walk(form), *batch, keys_required) for form in FORMS)
    assert plain == compiled


@fuzz
@given(st.binary(max_size=300), st.integers(0, 100), st.booleans())
def test_both_forms_agree_on_anything_at_all(data: bytes, count: int, keys_required: bool) -> None:
    plain, compiled = (try_walk(find_walk(form), data, count, keys_required) for form in FORMS)
    assert plain == compiled


@pytest.mark.parametrize("form", FORMS)
def test_records_that_are_cut_off_anywhere_are_refused(form: str) -> None:
    walk = find_walk(form)
    records = [(1000, b"key", b"v" * 100, [("name", b"content")])] * 2
    data = build_batch(records)[HEADER_SIZE:]
    assert walk(data, 2, True) == (0, [])
    for end in range(len(data)):
        with pytest.raises(MalformedError):
            walk(data[:end], 2, True)


@pytest.mark.parametrize("form", FORMS)
def test_a_batch_without_records_has_no_timestamp(form: str) -> None:
    assert find_walk(form)(b"", 0, True) == (0, [])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("deltas", [[-1] * 64, [0] * 64, [-64] * 64, [-3, *[-60] * 63], [-3, *[5] * 63]])
def test_blocks_of_one_layout_give_their_largest_timestamp(form: str, deltas: list[int]) -> None:
    bodies = [b"\0" + encode_varint(value) + encode_varint(index) + b"\1\1\0" for index, value in enumerate(deltas)]
    data = b"".join(encode_varint(len(body)) + body for body in bodies)
    assert find_walk(form)(data, len(deltas), False) == (max(deltas), [])
