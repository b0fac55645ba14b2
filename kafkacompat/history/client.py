"""One client of a run: a process that records its work and can be killed.

`python -m kafkacompat.history` starts it. It reads its orders as JSON from standard input, because they may hold passwords. It ends
in good order on SIGTERM, and when the process that started it ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any, NamedTuple

from kafkacompat.history.events import Event, HistoryPartition, encode_event

EXIT_REPLACE = 3
"""Exit code of a client that cannot continue, and that another one is to replace."""

PAUSE_S = 0.05
LONGEST_CALL_S = 15.0
"""Longest time of one call, three times the timeout that it is given; after it, librdkafka is taken to hang."""

LONGEST_END_S = 60.0
"""Longest time that a client takes to end in good order."""

GROUP_PROTOCOLS = CLASSIC, CONSUMER, MIXED = "classic", "consumer", "mixed"
"""Kafka's names, and one for members that choose a protocol at random whenever they join."""

_NEVER_SET = threading.Event()

ROLES = {
    "producer": "kafkacompat.history.producing:run_producer",
    "transactional": "kafkacompat.history.producing:run_transactional_producer",
    "copier": "kafkacompat.history.copying:run_copier",
    "member": "kafkacompat.history.reading:run_member",
    "reader": "kafkacompat.history.reading:run_reader",
    "last": "kafkacompat.history.reading:run_last_reader",
}


class ClientOrders(NamedTuple):
    """The orders of a client."""

    role: str
    ordinal: int
    incarnation: int
    bootstrap: str
    config: dict[str, str]
    """Further client properties for this broker, by librdkafka's names."""
    topic_prefix: str
    throughput: float
    isolation: str
    group_protocol: str
    session_timeout_ms: int
    transactional: bool
    seed: int
    folder: str
    parent: int

    @property
    def identity(self) -> str:
        """The client's identity, which its replacements keep."""
        return f"{self.role}-{self.ordinal}"

    @property
    def name(self) -> str:
        """The name of this process of the client."""
        return f"{self.identity}.{self.incarnation}"

    @property
    def recording_path(self) -> Path:
        """The file that the client records in."""
        return Path(self.folder) / f"{self.name}.jsonl"


RECORDS_PARTITIONS, COPIES_PARTITIONS = 4, 2


class HistoryTopicNames(NamedTuple):
    """The topics and groups of a run; ``copies`` is the topic that copiers write."""

    records: str
    copies: str
    members: str
    copiers: str

    @staticmethod
    def with_prefix(prefix: str) -> HistoryTopicNames:
        """Build the names with a prefix."""
        return HistoryTopicNames(f"{prefix}-records", f"{prefix}-copies", f"{prefix}-members", f"{prefix}-copiers")

    def record_partitions(self) -> list[HistoryPartition]:
        """List the partitions that producers write to."""
        return [HistoryPartition(self.records, number) for number in range(RECORDS_PARTITIONS)]

    def copy_partitions(self) -> list[HistoryPartition]:
        """List the partitions that copiers write to."""
        return [HistoryPartition(self.copies, number) for number in range(COPIES_PARTITIONS)]


class ReplacementNeededError(Exception):
    """This client cannot continue, but a replacement can."""


class HistoryClient:
    """The parts that every role uses: orders, record, random choices, and the end of the work."""

    def __init__(self, orders: ClientOrders) -> None:
        self.orders = orders
        self.name = orders.name
        self.names = HistoryTopicNames.with_prefix(orders.topic_prefix)
        self.random = Random(f"{orders.seed} {orders.name}")
        self.config: dict[str, Any] = {
            # With the default, a call that waits for a coordinator may wait for ever once all brokers were down
            # (librdkafka 2.16): the library drops the broker that the call waits for.
            "metadata.recovery.strategy": "none",
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
            **orders.config,
            "bootstrap.servers": orders.bootstrap,
            "client.id": orders.name,
        }
        self._stopped_at: float | None = None
        self._last_text = ""
        # Unbuffered, so that recorded events survive a kill.
        self._part = os.open(orders.recording_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stopped_at = time.monotonic()

    def record(self, event: Event) -> None:
        """Add an event to the history."""
        os.write(self._part, encode_event(event))

    def should_continue(self) -> bool:
        """Return whether the client continues to work."""
        return self._stopped_at is None and os.getppid() == self.orders.parent

    def retry(self, call: Callable[[], Any], passes: Callable[[Any], bool] | None = None) -> Any:
        """Repeat a call while it fails with a transient error; by default, librdkafka's error says whether it is one.

        Raises KafkaException for other errors, and ReplacementNeededError when the client must end.
        """
        from confluent_kafka import KafkaException

        while True:
            try:
                return self._call_in_time(call)
            except KafkaException as problem:
                error = problem.args[0]
                if not (error.retriable() if passes is None else passes(error)):
                    raise
                self.log_line(f"repeats a call after {error}")
            if not self.should_continue() and time.monotonic() > (self._stopped_at or 0) + LONGEST_END_S:
                raise ReplacementNeededError(f"{call} does not succeed in {LONGEST_END_S:g} s")
            pause(PAUSE_S)

    def _call_in_time(self, call: Callable[[], Any]) -> Any:
        """Make a call that has a timeout; if it does not return all the same, the process ends, as no other thread can stop it."""
        hanging = threading.Timer(LONGEST_CALL_S, self._end_hanging, (call,))
        hanging.daemon = True
        hanging.start()
        try:
            return call()
        finally:
            hanging.cancel()

    def _end_hanging(self, call: Callable[[], Any]) -> None:
        self.log_line(f"ends, as {call} has not returned in {LONGEST_CALL_S:g} s")
        os._exit(EXIT_REPLACE)

    def log_line(self, text: str) -> None:
        """Write a line to the client's log, unless it repeats the last one."""
        if text != self._last_text:
            print(f"{now_ns()} {self.name}: {text}", file=sys.stderr, flush=True)
        self._last_text = text


def is_not_fatal(error: Any) -> bool:
    """Return whether a consumer may repeat a call; librdkafka marks only producers' errors as retriable."""
    return not error.fatal()


def pause(seconds: float) -> None:
    """Wait; an event that is never set does it without a sleep."""
    _NEVER_SET.wait(seconds)


def now_ns() -> int:
    """Return the time on the clock of the history."""
    return time.monotonic_ns()


def run_client(orders_json: str) -> int:
    """Run the client's role; returns the exit code."""
    from confluent_kafka import KafkaException

    orders = ClientOrders(**json.loads(orders_json))
    module, function = ROLES[orders.role].split(":")
    client = HistoryClient(orders)
    try:
        getattr(import_module(module), function)(client)
    except (ReplacementNeededError, KafkaException) as problem:
        client.log_line(f"ends after {problem}")
        return EXIT_REPLACE
    return 0
