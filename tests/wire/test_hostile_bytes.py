"""Bytes made up to hurt: only MalformedError comes out, after work and memory in proportion to the input.

Hypothesis looks for them. Work is counted in lines of Python, not in time, so that a busy machine changes nothing.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from random import Random
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafkacompat.wire.apis import API_NAMES, find_api
from kafkacompat.wire.compiler import encode_message, find_reader
from kafkacompat.wire.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafkacompat.wire.headers import RequestHeader, ResponseHeader
from kafkacompat.wire.primitives import MalformedError, encode_uvarint
from kafkacompat.wire.schema import Message
from tests.wire.newer_messages import lift_message
from tests.wire.random_messages import Mode, make_message

MESSAGES = [
    *(message for key in API_NAMES for message in find_api(key)),
    RequestHeader,
    ResponseHeader,
    ConsumerProtocolSubscription,
    ConsumerProtocolAssignment,
]
# An object of many fields can stand in two bytes; a message has some objects even when it is empty.
LINES_PER_BYTE, LINES_AT_LEAST = 10, 300
MEMORY_PER_BYTE, MEMORY_AT_LEAST = 250, 20_000
LIES = (
    b"\xff",
    b"\x7f\xff",
    b"\xff\xfe",
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xfe",
    b"\x00\x01\x86\xa0",
    encode_uvarint(100_000),
    encode_uvarint(2**31),
    encode_uvarint(2**32 - 1),
    b"\xff" * 6,
    bytes(300),
    b"\x01" * 300,
    b"\x02" * 300,
)
each_message = pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
# No deadline: time decides no test.
fuzz = settings(max_examples=15, deadline=None, database=None, suppress_health_check=list(HealthCheck))


@st.composite
def hostile_bytes(draw: st.DrawFn, cls: type[Message], version: int) -> bytes:
    """Anything at all, or a message with lies put in: lengths, counts, tags, markers of null, text."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=300))
    # A seed, not `st.randoms`: Hypothesis would draw each number of the generator, which takes most of the test's time.
    rng = Random(draw(st.integers(0, 2**32 - 1)))
    message = make_message(cls, version, rng, draw(st.sampled_from((Mode.SMALL, Mode.RANDOM, Mode.NULL))))
    data = encode_message(lift_message(message, rng) if version in cls.FLEXIBLE else message, version)
    for _ in range(draw(st.integers(1, 3))):
        position = draw(st.integers(0, len(data)))
        lie = draw(st.sampled_from(LIES) | st.binary(min_size=1, max_size=8))
        data = data[:position] + lie + data[position + draw(st.sampled_from((0, len(lie)))) :]
    return data[: draw(st.sampled_from((len(data), len(data) // 2)))]


@each_message
@fuzz
@given(draws=st.data())
def test_only_malformed_comes_out(cls: type[Message], draws: st.DataObject) -> None:
    version = draws.draw(st.sampled_from(list(cls.VERSIONS)))
    data = draws.draw(hostile_bytes(cls, version))
    read = find_reader(cls, version)
    assert lines_of(read, data) <= LINES_AT_LEAST + LINES_PER_BYTE * len(data)
    assert memory_of(read, data) <= MEMORY_AT_LEAST + MEMORY_PER_BYTE * len(data)


def attempt_read(read: Callable[[bytes, int], Any], data: bytes) -> None:
    try:
        read(data, 0)
    except MalformedError:
        return


def lines_of(read: Callable[[bytes, int], Any], data: bytes) -> int:
    """Count the lines of Python that reading runs."""
    lines = 0

    def count(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        attempt_read(read, data)
    finally:
        sys.settrace(before)
    return lines


def memory_of(read: Callable[[bytes, int], Any], data: bytes) -> int:
    """Return the most memory that reading takes, in bytes."""
    tracemalloc.start()
    try:
        attempt_read(read, data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
