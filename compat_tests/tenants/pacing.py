"""Paced clients of many instances in one process: each sends a record when it is due, and a consumer long-polls beside it.

A record's latency counts from the moment at which it was due, not from its sending: otherwise a broker that delays a client would
hide its delay. Times are the system's monotonic clock, which all processes share.
"""

from __future__ import annotations

import multiprocessing
import selectors
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from compat_tests import batches
from compat_tests.raw_client import ClosedError, RawClient, fetch_request, produce_request
from kafkacompat.wire.apis.fetch import FetchResponse
from kafkacompat.wire.apis.produce import ProduceResponse

PRODUCE_VERSION = 9
FETCH_VERSION = 11
RECORD_BYTES = 100
CHUNK_BYTES = 256 * 1024
LAST_ANSWERS_SECONDS = 10.0
"""The time after the last record in which answers may still arrive."""

_CONTEXT = multiprocessing.get_context("spawn")


class Place(NamedTuple):
    """The topic that one paced client sends to, and a port that leads to it. The topic is empty and has one partition."""

    port: int
    topic: str


class Pace(NamedTuple):
    """The load of all clients: each sends ``rate`` records a second; consumers are left out if ``has_consumers`` is False."""

    places: Sequence[Place]
    rate: float
    has_consumers: bool = True


class Sample(NamedTuple):
    """One record: when it was due, and the seconds to its acknowledgement and to its fetch; None if that did not happen."""

    due: float
    acknowledged_s: float | None
    fetched_s: float | None


class PaceError(Exception):
    """A paced client received an error, or lost its connection."""


class Channel:
    """One connection; *on_answer* receives each answer once it is whole. No read waits for the rest of an answer."""

    def __init__(self, place: Place, on_answer: Callable[[bytes], None]) -> None:
        self.client = RawClient(place.port, client_id="paced")
        self._on_answer = on_answer
        self._received = bytearray()

    def fileno(self) -> int:
        """Return the socket's descriptor, for a selector."""
        return self.client.socket.fileno()

    def read(self) -> None:
        """Read the received bytes; raises PaceError if the broker has closed the connection."""
        try:
            data = self.client.socket.recv(CHUNK_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError as problem:
            raise PaceError(f"a quiet client lost its connection: {problem}") from None
        if not data:
            raise PaceError("the broker closed the connection of a quiet client")
        self._received += data
        while len(self._received) >= 4:
            (size,) = struct.unpack_from(">i", self._received)
            if len(self._received) < 4 + size:
                break
            answer = bytes(self._received[4 : 4 + size])
            del self._received[: 4 + size]
            self._on_answer(answer)


class PacedClient:
    """The producer and the consumer of one place; ``samples`` has the records so far."""

    def __init__(self, place: Place, batch: bytes, has_consumer: bool) -> None:
        self._place = place
        self._due: list[float] = []
        self._acknowledged: list[float] = []
        self._fetched: list[float] = []
        self._batch_bytes = len(batch)
        self._producer = Channel(place, self._note_acknowledged)
        self._frame = self._producer.client.encode(produce_request(place.topic, {0: batch}, acks=1), PRODUCE_VERSION)
        self._consumer = Channel(place, self._note_fetched) if has_consumer else None
        if self._consumer is not None:
            self._fetch()

    @property
    def channels(self) -> list[Channel]:
        """The connections."""
        return [self._producer] if self._consumer is None else [self._producer, self._consumer]

    def close(self) -> None:
        """Close the connections."""
        for channel in self.channels:
            channel.client.socket.close()

    def send(self, due: float) -> None:
        """Send a record that is due."""
        self._due.append(due)
        self._producer.client.send_frame(self._frame)

    def has_all(self) -> bool:
        """Return whether every record is acknowledged and fetched."""
        count = len(self._due)
        return len(self._acknowledged) >= count and (self._consumer is None or len(self._fetched) >= count)

    def list_samples(self) -> Iterator[Sample]:
        """Yield the records in the order of their due times."""
        for number, due in enumerate(self._due):
            acknowledged, fetched = (
                times[number] - due if number < len(times) else None for times in (self._acknowledged, self._fetched)
            )
            yield Sample(due, acknowledged, fetched)

    def _note_acknowledged(self, frame: bytes) -> None:
        now = time.monotonic()
        answer = self._producer.client.decode(frame, ProduceResponse, PRODUCE_VERSION)
        _check_code(answer.responses[0].partition_responses[0].error_code, "produce")
        self._acknowledged.append(now)

    def _note_fetched(self, frame: bytes) -> None:
        now = time.monotonic()
        assert self._consumer is not None
        answer = self._consumer.client.decode(frame, FetchResponse, FETCH_VERSION)
        (part,) = answer.responses[0].partitions
        _check_code(part.error_code, "fetch")
        # Every batch holds one record, and the broker returns whole ones first.
        count = len(part.records or b"") // self._batch_bytes  # type: ignore[arg-type]
        self._fetched += [now] * count
        self._fetch()

    def _fetch(self) -> None:
        assert self._consumer is not None
        self._consumer.client.send(fetch_request(self._place.topic, {0: len(self._fetched)}), FETCH_VERSION)


def _check_code(code: int, request: str) -> None:
    if code:
        raise PaceError(f"a quiet client's {request} was answered with the error {code}")


class RunningPace:
    """Paced clients in a process of their own."""

    def __init__(self, process: Any, parent: Connection) -> None:
        self._process = process
        self._parent = parent
        self._samples: list[Sample] | None = None

    def finish(self) -> list[Sample]:
        """End the load and return its records in the order of their due times; raises PaceError if a client failed."""
        if self._samples is None:
            self._parent.send("stop")
            self._samples = _receive(self._parent)
            self._process.join()
        return self._samples


def _receive(end: Connection) -> Any:
    try:
        outcome = end.recv()
    except EOFError:
        raise PaceError("the process of the quiet clients failed; its traceback is above") from None
    if isinstance(outcome, PaceError):
        raise outcome
    return outcome


@contextmanager
def paced(pace: Pace) -> Iterator[RunningPace]:
    """Run the load during the block; it has begun when the block begins."""
    parent, child = _CONTEXT.Pipe()
    process = _CONTEXT.Process(target=run_pace, args=(pace, child), daemon=True)
    process.start()
    child.close()
    try:
        assert _receive(parent) == "ready"
        yield RunningPace(process, parent)
    finally:
        parent.close()
        process.terminate()
        process.join()


def run_pace(pace: Pace, parent: Connection) -> None:
    """Send until the parent says stop, then send it the samples, or the PaceError that ended the load."""
    try:
        with ExitStack() as stack:
            batch = batches.build([b"x" * RECORD_BYTES], key=None)
            clients = [PacedClient(place, batch, pace.has_consumers) for place in pace.places]
            for client in clients:
                stack.callback(client.close)
            parent.send("ready")
            _send_when_due(clients, pace, parent)
            samples = [sample for client in clients for sample in client.list_samples()]
        parent.send(sorted(samples, key=lambda sample: sample.due))
    except (PaceError, ClosedError) as problem:
        parent.send(problem if isinstance(problem, PaceError) else PaceError(str(problem)))


def _send_when_due(clients: Sequence[PacedClient], pace: Pace, parent: Connection) -> None:
    """Let the clients send in turn, evenly spread, until the parent says stop; then wait for the last answers."""
    gap = 1 / (pace.rate * len(clients))
    begin = time.monotonic()
    turn = 0
    with selectors.DefaultSelector() as selector:
        for channel in (channel for client in clients for channel in client.channels):
            selector.register(channel, selectors.EVENT_READ)
        selector.register(parent, selectors.EVENT_READ)
        deadline = None
        while deadline is None or (time.monotonic() < deadline and not all(client.has_all() for client in clients)):
            wait = gap if deadline is not None else max(0.0, begin + turn * gap - time.monotonic())
            for key, _ in selector.select(wait):
                if key.fileobj is parent:
                    selector.unregister(parent)
                    deadline = time.monotonic() + LAST_ANSWERS_SECONDS
                else:
                    assert isinstance(key.fileobj, Channel)
                    key.fileobj.read()
            while deadline is None and (due := begin + turn * gap) <= time.monotonic():
                clients[turn % len(clients)].send(due)
                turn += 1
