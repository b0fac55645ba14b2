"""The noisy neighbours: each attack runs in a process of its own, at a lower priority than the quiet clients.

The lower priority keeps an attack from taking the processor time of the quiet clients on the same machine: the broker's fairness is
measured, not the kernel's.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import NamedTuple

from compat_tests import batches
from compat_tests.raw_client import ClosedError, RawClient, fetch_request, produce_request
from compat_tests.tenants.pacing import FETCH_VERSION, PRODUCE_VERSION
from compat_tests.waiting import until
from kafkacompat.wire.apis.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafkacompat.wire.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kafkacompat.wire.apis.produce import ProduceResponse
from kafkacompat.wire.errors import ErrorCode

TOPIC = "noise"
BATCH_BYTES = 100_000
LIMIT_BYTES_PER_SECOND = 1_000_000
TIMES_LIMIT = 10
BURST_SECONDS = 3.0
SENDERS = 10
CONNECTIONS = 10_000
CONNECTION_LIMIT = 100
STORAGE_BYTES = 8_000_000
GROUPS = 100_000
GROUP_LIMIT = 1_000
COMMIT_VERSION = 7
COMMITS_IN_FLIGHT = 50
READERS = 50
REQUESTS_A_READER = 20
STORED_BATCHES = 100
SPARE_DESCRIPTORS = 100
NICENESS = 10

Figures = dict[str, float]
Stop = threading.Event
"""The attack is over when it is set."""

_CONTEXT = multiprocessing.get_context("spawn")


class Target(NamedTuple):
    """The port of the noisy instance, and the scale of counts: 1 for the full ones."""

    port: int
    scale: float = 1.0


class Attack(NamedTuple):
    """One way to be noisy: *run* returns its figures when the event is set, *prepare* comes before the quiet time.

    ``properties`` are those of the noisy instance; ``is_bounded`` judges by the figures if the instance's limit held.
    """

    name: str
    title: str
    properties: Mapping[str, str]
    run: Callable[[Target, Stop], Figures]
    is_bounded: Callable[[Figures], bool]
    prepare: Callable[[Target], None] = lambda _target: None


def send_too_much(target: Target, stop: Stop) -> Figures:
    """Send at ten times the limit, on ten connections, whatever the broker says."""
    figures: Counter[str] = Counter()
    lock = threading.Lock()

    def send() -> None:
        batch = batches.build([b"x" * 1000] * (BATCH_BYTES // 1000))
        rate = LIMIT_BYTES_PER_SECOND * TIMES_LIMIT / SENDERS / len(batch)
        with contextlib.suppress(OSError, ClosedError), RawClient(target.port, client_id="noisy") as client:
            frame = client.encode(produce_request(TOPIC, {0: batch}, acks=1), PRODUCE_VERSION)
            reader = threading.Thread(target=count_answers, args=(client,), daemon=True)
            reader.start()
            begun, sent = time.monotonic(), 0
            while not stop.wait(max(0.0, begun + sent / rate - time.monotonic())):
                client.send_frame(frame)
                sent += 1
                with lock:
                    figures["sent bytes"] += len(batch)

    def count_answers(client: RawClient) -> None:
        with contextlib.suppress(OSError, ClosedError):
            while True:
                answer = client.receive(ProduceResponse, PRODUCE_VERSION)
                with lock:
                    figures["throttle time ms"] += answer.throttle_time_ms
                    figures["accepted bytes" if not _code_of(answer) else "refused bytes"] += BATCH_BYTES

    begun = time.monotonic()
    for _ in range(SENDERS):
        threading.Thread(target=send, daemon=True).start()
    stop.wait()
    seconds = time.monotonic() - begun
    with lock:
        counted = Counter(figures)
    return {
        "accepted MB": counted["accepted bytes"] / 1e6,
        "seconds": seconds,
        "limit MB/s": LIMIT_BYTES_PER_SECOND / 1e6,
        "throttle time s": counted["throttle time ms"] / 1e3,
    }


def is_within_rate(figures: Figures) -> bool:
    """Return whether no more was accepted than the limit, a burst, and what was under way allow."""
    return figures["accepted MB"] <= figures["limit MB/s"] * (figures["seconds"] + BURST_SECONDS)


def open_connections(target: Target, stop: Stop) -> Figures:
    """Open 10,000 connections, and hold all that the broker leaves open."""
    wanted = max(1, int(CONNECTIONS * target.scale))
    room = raise_descriptor_limit() - SPARE_DESCRIPTORS
    held: list[socket.socket] = []
    opened = refused = 0
    try:
        while opened < wanted and not stop.is_set():
            try:
                connection = socket.create_connection(("127.0.0.1", target.port), timeout=1)
                connection.setblocking(False)
                held.append(connection)
                opened += 1
            except OSError:
                refused += 1
            if len(held) >= room:
                held = drop_closed(held)
                if len(held) >= room:
                    break
        stop.wait()
        open_at_end = len(drop_closed(held))
    finally:
        for connection in held:
            connection.close()
    return {"opened": opened, "not accepted": refused, "open at the end": open_at_end, "limit": CONNECTION_LIMIT}


def raise_descriptor_limit() -> int:
    """Let this process have as many open files as it may; returns that number."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def drop_closed(connections: list[socket.socket]) -> list[socket.socket]:
    """Close the connections that the broker has closed; returns the others."""
    left = []
    for connection in connections:
        try:
            is_open = connection.recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            is_open = True
        except OSError:
            is_open = False
        if is_open:
            left.append(connection)
        else:
            connection.close()
    return left


def fill_storage(target: Target, stop: Stop) -> Figures:
    """Produce until the broker refuses, and go on trying."""
    batch = batches.build([b"x" * 1000] * (BATCH_BYTES // 1000))
    accepted = refused = 0
    with RawClient(target.port, client_id="noisy") as client:
        client.socket.settimeout(0.5)
        request = produce_request(TOPIC, {0: batch}, acks=1)
        try:
            while not stop.is_set():
                code = _code_of(client.call(request, ProduceResponse, PRODUCE_VERSION))
                accepted += not code
                refused += bool(code)
        except (TimeoutError, ClosedError):
            stop.wait()
    return {"accepted MB": accepted * len(batch) / 1e6, "refused batches": refused, "limit MB": STORAGE_BYTES / 1e6}


def _code_of(answer: ProduceResponse) -> int:
    return answer.responses[0].partition_responses[0].error_code


def make_groups(target: Target, stop: Stop) -> Figures:
    """Commit an offset in 100,000 groups, one after the other, fifty requests ahead of the answers."""
    wanted = max(1, int(GROUPS * target.scale))
    codes: Counter[int] = Counter()
    with RawClient(target.port, client_id="noisy") as client:
        unanswered = 0
        for number in range(wanted):
            if stop.is_set():
                break
            client.send(_commit_request(f"group-{number}"), COMMIT_VERSION)
            unanswered += 1
            if unanswered >= COMMITS_IN_FLIGHT:
                codes[_commit_code(client)] += 1
                unanswered -= 1
        for _ in range(unanswered):
            codes[_commit_code(client)] += 1
    stop.wait()
    refused = {f"refused by {ErrorCode(code).name}": count for code, count in codes.items() if code}
    return {"groups": codes[ErrorCode.NONE], **refused, "limit": GROUP_LIMIT}


def await_coordinator(target: Target) -> None:
    """Wait until the coordinator of groups is loaded."""
    with RawClient(target.port) as client:
        request = FindCoordinatorRequest(key="group-0", key_type=0)
        until(lambda: not client.call(request, FindCoordinatorResponse, 1).error_code)
        until(lambda: not _commit(client, "group-0"))


def _commit_request(group: str) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    return OffsetCommitRequest(group_id=group, topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])])


def _commit(client: RawClient, group: str) -> int:
    client.send(_commit_request(group), COMMIT_VERSION)
    return _commit_code(client)


def _commit_code(client: RawClient) -> int:
    answer = client.receive(OffsetCommitResponse, COMMIT_VERSION)
    return int(answer.topics[0].partitions[0].error_code)


def store_batches(target: Target) -> None:
    """Fill the topic with 10 MB for readers."""
    batch = batches.build([b"x" * 1000] * (BATCH_BYTES // 1000))
    with RawClient(target.port, client_id="noisy") as client:
        for _ in range(STORED_BATCHES):
            client.call(produce_request(TOPIC, {0: batch}, acks=1), ProduceResponse, PRODUCE_VERSION)


def never_read(target: Target, stop: Stop) -> Figures:
    """Send fetches of a megabyte on fifty connections, and read none of the answers."""
    sent = 0
    with contextlib.ExitStack() as stack:
        readers = [stack.enter_context(RawClient(target.port, client_id="noisy")) for _ in range(READERS)]
        for reader in readers:
            payload = reader.encode(fetch_request(TOPIC, {0: 0}), FETCH_VERSION)
            frame = struct.pack(">i", len(payload)) + payload
            with contextlib.suppress(OSError):
                reader.socket.sendall(frame * REQUESTS_A_READER)
                sent += REQUESTS_A_READER
        stop.wait()
    return {"unread requests": sent, "unread MB": sent * (1 << 20) / 1e6}


ATTACKS = {
    attack.name: attack
    for attack in (
        Attack(
            "throughput",
            "sends at ten times its limit",
            {"quota.produce.bytes.per.second": str(LIMIT_BYTES_PER_SECOND)},
            send_too_much,
            is_within_rate,
        ),
        Attack(
            "connections",
            "opens 10,000 connections",
            {"limit.connections": str(CONNECTION_LIMIT)},
            open_connections,
            lambda figures: figures["open at the end"] <= CONNECTION_LIMIT,
        ),
        Attack(
            "storage",
            "fills its storage",
            {"limit.storage.bytes": str(STORAGE_BYTES)},
            fill_storage,
            lambda figures: figures["accepted MB"] < 2 * figures["limit MB"],
        ),
        Attack(
            "groups",
            "makes 100,000 groups",
            {"limit.groups": str(GROUP_LIMIT)},
            make_groups,
            lambda figures: figures["groups"] <= GROUP_LIMIT,
            await_coordinator,
        ),
        Attack(
            "readers",
            "never reads its answers",
            {"quota.fetch.bytes.per.second": str(LIMIT_BYTES_PER_SECOND)},
            never_read,
            lambda _figures: True,
            store_batches,
        ),
    )
}


class RunningAttack:
    """An attack in a process of its own, which begins at `begin`."""

    def __init__(self, parent: Connection) -> None:
        self._parent = parent

    def begin(self) -> None:
        """Let the attack begin."""
        self._parent.send("begin")

    def end(self) -> Figures:
        """End the attack and return its figures."""
        self._parent.send("end")
        try:
            figures: Figures = self._parent.recv()
        except EOFError:
            raise AssertionError("the process of an attack failed; its traceback is above") from None
        return figures


@contextmanager
def prepared_attack(attack: Attack, target: Target) -> Iterator[RunningAttack]:
    """Have an attack ready during the block; it begins and ends inside."""
    parent, child = _CONTEXT.Pipe()
    process = _CONTEXT.Process(target=run_attack, args=(attack.name, target, child), daemon=True)
    process.start()
    child.close()
    try:
        assert parent.recv() == "ready"
        yield RunningAttack(parent)
    finally:
        parent.close()
        process.kill()
        process.join()


def run_attack(name: str, target: Target, parent: Connection) -> None:
    """Prepare, wait for the beginning, and send the figures at the end."""

    def await_end() -> None:
        parent.recv()
        stop.set()

    stop = threading.Event()
    os.nice(NICENESS)
    attack = ATTACKS[name]
    attack.prepare(target)
    parent.send("ready")
    parent.recv()
    threading.Thread(target=await_end, daemon=True).start()
    parent.send(attack.run(target, stop))
