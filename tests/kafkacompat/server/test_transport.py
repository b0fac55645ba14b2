"""The zero-copy transport over a real connection, turned by hand instead of by a reactor."""

from __future__ import annotations

import gc
import socket
import weakref
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Protocol
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from kafkacompat.server.transport import READ_AHEAD_BYTES, ZeroCopyTransport
from kafkacompat.storage.segment.shared_files import FileRegion, SegmentFile
from tests.kafkacompat.server.regions import is_closed, log_file, make_region

# More than a connection's two ends hold.
LARGE = 16_000_000


class Reactor(Clock):
    """Keeps who wants to write, and lets them when a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.writers: set[Any] = set()

    def addReader(self, reader: Any) -> None:
        """Nobody reads here."""

    def removeReader(self, reader: Any) -> None:
        """Nobody reads here."""

    def addWriter(self, writer: Any) -> None:
        self.writers.add(writer)

    def removeWriter(self, writer: Any) -> None:
        self.writers.discard(writer)

    def turn(self) -> None:
        """Do what Twisted does for those that want to write, and what was to be called."""
        for writer in list(self.writers):
            problem = writer.doWrite()
            if problem is not None:
                writer.connectionLost(Failure(problem))
        self.advance(0)


class Client(Protocol):
    lost = False

    def connectionLost(self, reason: Failure = Failure(ConnectionError())) -> None:  # noqa: B008
        self.lost = True


class ColdRegion(FileRegion):
    """A region of which nothing is ever in memory."""

    def peek(self) -> None:
        return None

    def is_resident(self, offset_in_region: int, size_bytes: int) -> bool:
        return False


def cold_region(file: SegmentFile, size_bytes: int) -> ColdRegion:
    assert file.acquire()
    return ColdRegion(file, 0, size_bytes)


class World:
    def __init__(self) -> None:
        self.reactor = Reactor()
        self.protocol = Client()
        self.theirs, ours = connected_pair()
        address = self.theirs.getsockname()
        self.transport = ZeroCopyTransport(ours, self.protocol, address, None, 1, self.reactor)
        self.transport.on_drained = self._drained
        self.transport.read_ahead = self._read_ahead
        self.drained: list[int] = []
        self.asked: list[tuple[int, int]] = []
        self.ahead: Deferred[None] = Deferred()

    def _drained(self) -> None:
        self.drained.append(self.transport.queued_bytes)

    def _read_ahead(self, region: FileRegion, offset: int, size_bytes: int) -> Deferred[None]:
        self.asked.append((offset, size_bytes))
        self.ahead = Deferred()
        return self.ahead

    def receive(self, size_bytes: int) -> bytes:
        """What the client gets while the reactor turns."""
        received = bytearray()
        while len(received) < size_bytes:
            try:
                data = self.theirs.recv(1 << 20)
            except BlockingIOError:
                self.reactor.turn()
                continue
            assert data, "the connection was closed"
            received += data
        return bytes(received)

    def nothing_comes(self) -> bool:
        self.reactor.turn()
        try:
            return not self.theirs.recv(1)
        except BlockingIOError:
            return True

    @property
    def wants_to_write(self) -> bool:
        return self.transport in self.reactor.writers


def connected_pair() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        theirs = socket.create_connection(listening.getsockname())
        ours, _ = listening.accept()
    theirs.setblocking(False)
    ours.setblocking(False)
    return theirs, ours


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.transport.connectionLost(Failure(ConnectionError()))
    made.theirs.close()


@pytest.fixture
def file(tmp_path: Path) -> SegmentFile:
    return log_file(tmp_path / "log", bytes(range(250)) * 16_000)


def test_parts_are_sent_at_once(world: World, file: SegmentFile) -> None:
    world.transport.send_parts([b"head", make_region(file, 1, 3), b"tail"])
    assert (world.transport.queued_bytes, world.transport.sent_bytes) == (0, 11)
    assert not world.wants_to_write
    assert world.receive(11) == b"head\1\2\3tail"
    assert is_closed(file)


def test_unsent_parts_wait_in_order(world: World, file: SegmentFile) -> None:
    data = b"x" * LARGE
    world.transport.send_parts([data])
    assert 0 < world.transport.queued_bytes < LARGE
    assert world.wants_to_write
    world.transport.send_parts([make_region(file, 1, 3), b"tail"])
    assert world.transport.queued_bytes + world.transport.sent_bytes == LARGE + 7
    assert world.receive(LARGE + 7) == data + b"\1\2\3tail"
    assert not world.wants_to_write


def test_a_waiting_sender_is_notified_of_drained_bytes(world: World) -> None:
    world.transport.send_parts([b"x" * LARGE])
    assert world.drained == []
    world.receive(LARGE)
    assert world.drained == sorted(world.drained, reverse=True)
    assert world.drained[-1] == 0


def test_nothing_is_sent_while_a_region_is_read_ahead(world: World, file: SegmentFile) -> None:
    world.transport.send_parts([cold_region(file, 3)])
    world.transport.send_parts([b"next"])
    assert not world.wants_to_write
    assert world.nothing_comes()
    assert world.asked == [(0, 3)]
    assert (world.transport.queued_bytes, world.transport.sent_bytes) == (7, 0)
    world.ahead.callback(None)
    assert world.receive(7) == b"\0\1\2next"
    assert world.asked == [(0, 3)]
    assert world.drained[-1] == 0


def test_a_region_that_never_stays_in_memory_arrives_all_the_same(world: World, file: SegmentFile) -> None:
    size = 2 * READ_AHEAD_BYTES + 5
    world.transport.send_parts([cold_region(file, size)])
    received = b""
    while len(received) < size:
        asked = world.asked[-1]
        assert asked == (len(received), min(READ_AHEAD_BYTES, size - len(received)))
        sent_before = world.transport.sent_bytes
        world.ahead.callback(None)
        received += world.receive(world.transport.sent_bytes - sent_before)
        world.reactor.turn()
    assert received == (bytes(range(250)) * 16_000)[:size]


def test_a_region_that_cannot_be_read_ahead_is_sent_without(world: World, file: SegmentFile) -> None:
    world.transport.send_parts([cold_region(file, 3)])
    world.ahead.errback(OSError("the disk is slow to speak"))
    assert world.receive(3) == b"\0\1\2"


def test_a_lost_connection_lets_go_of_its_files(world: World, file: SegmentFile) -> None:
    world.transport.send_parts([b"x" * LARGE, make_region(file, 0, 3)])
    world.transport.connectionLost(Failure(ConnectionError()))
    assert world.protocol.lost
    assert world.transport.queued_bytes == 0
    world.transport.send_parts([make_region(file, 0, 3)])
    assert is_closed(file)


def test_a_lost_connection_is_gone_without_a_garbage_collector() -> None:
    world = World()
    gone = weakref.ref(world.transport)
    world.theirs.close()
    world.transport.connectionLost(Failure(ConnectionError()))
    gc.disable()
    try:
        del world
        assert gone() is None
    finally:
        gc.enable()


def test_a_connection_lost_while_reading_ahead_stays_lost(world: World, file: SegmentFile) -> None:
    world.transport.send_parts([cold_region(file, 3)])
    world.transport.connectionLost(Failure(ConnectionError()))
    assert is_closed(file)
    world.ahead.callback(None)
    assert not world.wants_to_write


def test_a_file_that_became_too_short_closes_the_connection(world: World, file: SegmentFile) -> None:
    world.transport.send_parts([make_region(file, 3_999_999, 2), b"next"])
    assert not world.protocol.lost
    world.reactor.turn()
    assert world.protocol.lost
    assert is_closed(file)


def test_so_does_one_that_became_too_short_while_it_was_read_ahead(world: World, file: SegmentFile) -> None:
    assert file.acquire()
    world.transport.send_parts([ColdRegion(file, 4_000_000, 2)])
    world.ahead.callback(None)
    world.reactor.turn()
    assert world.protocol.lost
    assert is_closed(file)


def test_lose_connection_waits_for_queued_parts(world: World) -> None:
    world.transport.send_parts([b"x" * LARGE])
    world.transport.loseConnection()
    world.reactor.turn()
    assert not world.protocol.lost
    assert len(world.receive(LARGE)) == LARGE
    world.reactor.turn()
    assert world.protocol.lost


def test_losing_the_connection_waits_for_a_region_that_is_read_ahead(world: World, file: SegmentFile) -> None:
    world.transport.send_parts([cold_region(file, 3)])
    world.transport.loseConnection()
    assert world.nothing_comes()
    assert not world.wants_to_write
    assert world.asked == [(0, 3)]
    world.ahead.callback(None)
    assert world.receive(3) == b"\0\1\2"
    world.reactor.turn()
    assert world.protocol.lost


def take_received(world: World) -> bytes:
    """What the client gets until the connection is closed or nothing comes any more."""
    received = b""
    for _ in range(10_000):
        if not world.wants_to_write:
            break
        world.reactor.turn()
        with suppress(BlockingIOError):
            received += world.theirs.recv(1 << 20)
    return received


def cut_and_regrow(file: SegmentFile, position: int) -> None:
    """What a truncation does to a segment's file, and what is appended then."""
    assert isinstance(file.cuts, list)
    file.cuts.append(position)
    file.file.truncate(position)
    file.file.append((b"?" * LARGE,), LARGE)


@pytest.mark.parametrize("size", [3_000_000, 4_000_000])
def test_a_region_that_is_cut_while_it_is_sent_closes_the_connection(world: World, tmp_path: Path, size: int) -> None:
    content = bytes(range(250)) * 64_000
    file = log_file(tmp_path / "log", content)
    file.cuts = []
    world.transport.send_parts([make_region(file, 0, len(content))])
    assert world.transport.queued_bytes > 0
    cut_and_regrow(file, size)
    received = take_received(world)
    assert world.protocol.lost and content.startswith(received) and len(received) < len(content)
    assert is_closed(file)


def test_a_region_that_is_cut_while_it_is_read_ahead_closes_the_connection(world: World, file: SegmentFile) -> None:
    file.cuts = []
    world.transport.send_parts([cold_region(file, 1_000_000)])
    cut_and_regrow(file, 10)
    world.ahead.callback(None)
    world.reactor.turn()
    assert world.transport.sent_bytes == 0 and not world.wants_to_write
    assert is_closed(file)


def test_a_file_that_ends_within_its_region_closes_the_connection(world: World, file: SegmentFile) -> None:
    world.transport.send_parts([cold_region(file, 1_000_000)])
    file.file.truncate(10)
    for _ in range(2):
        world.ahead.callback(None)
        world.reactor.turn()
    assert world.transport.sent_bytes == 10 and not world.wants_to_write
    assert is_closed(file)
