"""Frames out of a stream, however it is cut."""

from __future__ import annotations

from random import Random

import pytest

from kafkacompat.wire.frames import SIZE, FrameError, FrameReader


def make_frame(content: bytes) -> bytes:
    return SIZE.pack(len(content)) + content


@pytest.mark.parametrize("seed", range(50))
def test_any_cut_of_the_stream_gives_the_same_frames(seed: int) -> None:
    rng = Random(seed)
    contents = [rng.randbytes(rng.choice([0, 1, 2, 3, 10, 500])) for _ in range(20)]
    stream = b"".join(map(make_frame, contents))
    reader, frames, position = FrameReader(1000), [], 0
    while position < len(stream):
        step = rng.choice([1, 2, 3, 5, 50, 600])
        frames += [bytes(frame) for frame in reader.feed(stream[position : position + step])]
        position += step
    assert frames == contents
    assert reader.held_bytes == 0


def test_held_bytes_count_received_not_claimed_bytes() -> None:
    reader = FrameReader(100_000_000)
    assert reader.feed(SIZE.pack(100_000_000) + b"x" * 10) == []
    assert reader.held_bytes == 14


@pytest.mark.parametrize("size", [-1, -(2**31), 1001, 2**31 - 1])
def test_a_size_out_of_bounds_is_refused(size: int) -> None:
    with pytest.raises(FrameError, match=str(size)):
        FrameReader(1000).feed(SIZE.pack(size))


def test_a_size_that_comes_byte_by_byte_is_checked_too() -> None:
    reader = FrameReader(1000)
    for byte in SIZE.pack(-1)[:3]:
        assert reader.feed(bytes((byte,))) == []
    with pytest.raises(FrameError):
        reader.feed(SIZE.pack(-1)[3:])
