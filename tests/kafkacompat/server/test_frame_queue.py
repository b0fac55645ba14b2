"""The frames of one connection: cut, counted, handed out in order, dropped."""

from __future__ import annotations

import pytest

from kafkacompat.server.frame_queue import FrameQueue
from kafkacompat.wire.frames import SIZE, FrameError


def make_frame(content: bytes) -> bytes:
    return SIZE.pack(len(content)) + content


def test_frames_are_taken_in_order() -> None:
    queue = FrameQueue(100)
    assert queue.receive(make_frame(b"one") + make_frame(b"two"))
    assert queue.receive(make_frame(b"three"))
    assert [bytes(queue.take()) for _ in range(3)] == [b"one", b"two", b"three"]
    assert not queue.waiting
    assert queue.held_bytes == 0


def test_part_of_a_frame_is_held_until_its_rest_comes() -> None:
    queue = FrameQueue(100)
    data = make_frame(b"content")
    assert not queue.receive(data[:6])
    assert (queue.is_mid_frame, queue.held_bytes) == (True, 6)
    assert queue.receive(data[6:])
    assert (queue.is_mid_frame, queue.held_bytes) == (False, 7)


def test_whole_frames_can_be_dropped_without_the_incomplete_one() -> None:
    queue = FrameQueue(100)
    data = make_frame(b"content")
    queue.receive(data + data[:6])
    queue.drop_waiting()
    assert (len(queue.waiting), queue.held_bytes) == (0, 6)
    assert queue.receive(data[6:])
    assert bytes(queue.take()) == b"content"


def test_everything_can_be_dropped() -> None:
    queue = FrameQueue(100)
    data = make_frame(b"content")
    queue.receive(data + data[:6])
    queue.drop_all()
    assert (len(queue.waiting), queue.held_bytes, queue.is_mid_frame) == (0, 0, False)


def test_a_frame_beyond_the_limit_is_an_error() -> None:
    with pytest.raises(FrameError):
        FrameQueue(6).receive(make_frame(b"content"))
