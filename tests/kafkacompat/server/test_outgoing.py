"""Buffers and file regions out of a socket, whole and in order, by sendfile and without."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkacompat.server.outgoing import MAX_COPIED_BYTES, SMALL_REGION_BYTES, Outgoing, release_regions
from kafkacompat.storage.files import operating_system as files
from kafkacompat.storage.segment.shared_files import RegionGoneError
from kafkacompat.wire.apis.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from tests.kafkacompat.server.regions import is_closed, log_file, make_region


@pytest.fixture(params=["sendfile", "copying"])
def pair(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[socket.socket, socket.socket]]:
    if request.param == "copying":
        monkeypatch.setattr(files, "send_file", files._send_by_copying)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    yield ours, theirs
    ours.close()
    theirs.close()


def pump_all(outgoing: Outgoing, ours: socket.socket, theirs: socket.socket) -> bytes:
    """Send and receive in turn until everything has left."""
    received = bytearray()
    while outgoing:
        try:
            outgoing.send(ours)
        except BlockingIOError:
            received += theirs.recv(1 << 20)
    try:
        while True:
            received += theirs.recv(1 << 20)
    except BlockingIOError:
        return bytes(received)


def test_buffers_and_regions_arrive_in_order(pair: tuple[socket.socket, socket.socket], tmp_path: Path) -> None:
    content = bytes(range(256)) * 20_000
    file = log_file(tmp_path / "log", content)
    outgoing = Outgoing()
    outgoing.extend([b"head", memoryview(b"more"), make_region(file, 100, 3_000_000), bytearray(b"between")])
    outgoing.extend([make_region(file, 0, 5), b"x" * 2_000_000, b"tail"])
    expected = b"headmore" + content[100:3_000_100] + b"between" + content[:5] + b"x" * 2_000_000 + b"tail"
    assert outgoing.size_bytes == len(expected)
    assert pump_all(outgoing, *pair) == expected
    assert outgoing.size_bytes == 0
    assert outgoing.sent_bytes == len(expected)


def test_a_file_closes_when_its_last_region_has_left(pair: tuple[socket.socket, socket.socket], tmp_path: Path) -> None:
    file = log_file(tmp_path / "log", b"abc")
    outgoing = Outgoing()
    outgoing.extend([make_region(file, 0, 3)])
    file.release()
    assert pump_all(outgoing, *pair) == b"abc"
    assert not file.acquire()


def test_small_regions_share_one_call_as_copies(tmp_path: Path) -> None:
    content = bytes(range(256)) * 1000
    file = log_file(tmp_path / "log", content)
    outgoing, (ours, theirs) = Outgoing(), socket.socketpair()
    with ours, theirs:
        outgoing.extend([b"a", make_region(file, 0, 20_000), b"b", make_region(file, 20_000, 30_000), b"c"])
        assert outgoing.send(ours) == 50_003
        assert theirs.recv(100_000) == b"a" + content[:20_000] + b"b" + content[20_000:50_000] + b"c"
    assert not outgoing
    assert is_closed(file)


def test_no_more_is_copied_than_a_client_may_leave_unread(tmp_path: Path) -> None:
    file = log_file(tmp_path / "log", bytes(SMALL_REGION_BYTES))
    outgoing, (ours, theirs) = Outgoing(), socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        while True:
            try:
                ours.send(bytes(1 << 20))
            except BlockingIOError:
                break
        regions = [make_region(file, 0, SMALL_REGION_BYTES) for _ in range(10)]
        outgoing.extend(regions)
        for _ in range(3):
            with pytest.raises(BlockingIOError):
                outgoing.send(ours)
        copied = [region for region in regions if region._file is None]
        assert copied == regions[: MAX_COPIED_BYTES // SMALL_REGION_BYTES]


def test_bytes_are_taken_in_pieces(tmp_path: Path) -> None:
    content = bytes(range(256)) * 1000
    file = log_file(tmp_path / "log", content)
    outgoing = Outgoing()
    outgoing.extend([b"ab", make_region(file, 0, 200_000), memoryview(b"cd"), make_region(file, 7, 3)])
    pieces = []
    while outgoing:
        pieces.append(outgoing.take(64 * 1024))
    assert b"".join(pieces) == b"ab" + content[:200_000] + b"cd" + content[7:10]
    assert [len(piece) for piece in pieces[:3]] == [64 * 1024] * 3
    assert outgoing.size_bytes == 0
    assert is_closed(file)


def test_taking_from_a_file_that_became_too_short_is_an_error(tmp_path: Path) -> None:
    outgoing = Outgoing()
    outgoing.extend([make_region(log_file(tmp_path / "log", b"abc"), 0, 5)])
    with pytest.raises(RegionGoneError):
        outgoing.take(10)


def test_clearing_lets_go_of_the_files(pair: tuple[socket.socket, socket.socket], tmp_path: Path) -> None:
    file = log_file(tmp_path / "log", b"abc")
    outgoing = Outgoing()
    outgoing.extend([b"x", make_region(file, 0, 3), make_region(file, 0, 0)])
    outgoing.clear()
    assert not outgoing
    assert is_closed(file)


def test_a_file_that_became_too_short_is_an_error(pair: tuple[socket.socket, socket.socket], tmp_path: Path) -> None:
    file = log_file(tmp_path / "log", b"abc")
    outgoing = Outgoing()
    outgoing.extend([make_region(file, 0, 5)])
    outgoing.send(pair[0])
    with pytest.raises(RegionGoneError):
        outgoing.send(pair[0])


def test_a_response_that_is_not_sent_lets_go_of_its_files(tmp_path: Path) -> None:
    file = log_file(tmp_path / "log", b"abc")
    partitions = [
        PartitionData(records=part) for part in (make_region(file, 0, 3), None, b"x", make_region(file, 1, 2))
    ]
    release_regions(FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)]))
    assert is_closed(file)
