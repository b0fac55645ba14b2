"""One client of a run: a process of its own, so that it can be killed, which records what it does.

Started as `python -m kafkacompat.history`, it reads its orders, in JSON, from standard input: there may be passwords in
them. It ends with SIGTERM, in good order, or with the process that started it.
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

from kafkacompat.history.events import Event, Place, line_of

EXIT_ANEW = 3
"""A client that cannot go on as it is, and whose place another one is to take."""

PAUSE_S = 0.05
LONGEST_END_S = 60.0
"""So long it tries to come to an end in good order."""

GROUP_PROTOCOLS = CLASSIC, CONSUMER, MIXED = "classic", "consumer", "mixed"
"""Kafka's names, and one for members that choose by the dice, whenever they come."""

_NEVER_SET = threading.Event()

ROLES = {
    "producer": "kafkacompat.history.producing:produce",
    "transactional": "kafkacompat.history.producing:transact",
    "copier": "kafkacompat.history.copying:copy",
    "member": "kafkacompat.history.reading:take_part",
    "reader": "kafkacompat.history.reading:follow",
    "last": "kafkacompat.history.reading:read_all",
}


class Orders(NamedTuple):
    """What a client is told."""

    role: str
    ordinal: int
    incarnation: int
    bootstrap: str
    config: dict[str, str]
    """What clients of this broker need, in librdkafka's words."""
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
        """Who it is; those who take its place are the same."""
        return f"{self.role}-{self.ordinal}"

    @property
    def name(self) -> str:
        """Who it is, as one process."""
        return f"{self.identity}.{self.incarnation}"

    @property
    def part(self) -> Path:
        """The file it records in."""
        return Path(self.folder) / f"{self.name}.jsonl"


RECORDS_PARTITIONS, COPIES_PARTITIONS = 4, 2


class TopicNames(NamedTuple):
    """The topics and groups of a run: what is produced, and what copiers make of it."""

    records: str
    copies: str
    members: str
    copiers: str

    @staticmethod
    def of(prefix: str) -> TopicNames:
        """Those of a prefix."""
        return TopicNames(f"{prefix}-records", f"{prefix}-copies", f"{prefix}-members", f"{prefix}-copiers")

    def places(self) -> list[Place]:
        """The partitions that records are produced to."""
        return [Place(self.records, number) for number in range(RECORDS_PARTITIONS)]

    def copy_places(self) -> list[Place]:
        """The partitions that copies go to."""
        return [Place(self.copies, number) for number in range(COPIES_PARTITIONS)]


class AnewError(Exception):
    """This client cannot go on; one in its place can."""


class Client:
    """What every role uses: the orders, the record, the dice, and whether to go on."""

    def __init__(self, orders: Orders) -> None:
        self.orders = orders
        self.name = orders.name
        self.names = TopicNames.of(orders.topic_prefix)
        self.random = Random(f"{orders.seed} {orders.name}")
        self.config: dict[str, Any] = {
            # With the default a call that waits for a coordinator may wait for good once all brokers were away
            # (librdkafka 2.16): the broker that it waits for is given up, and nobody tells it.
            "metadata.recovery.strategy": "none",
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
            **orders.config,
            "bootstrap.servers": orders.bootstrap,
            "client.id": orders.name,
        }
        self._stopped_at: float | None = None
        self._told = ""
        # Not buffered: what is recorded outlives a kill.
        self._part = os.open(orders.part, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stopped_at = time.monotonic()

    def record(self, event: Event) -> None:
        """Add to the history."""
        os.write(self._part, line_of(event))

    def goes_on(self) -> bool:
        """Whether there is more to do."""
        return self._stopped_at is None and os.getppid() == self.orders.parent

    def again(self, call: Callable[[], Any], passes: Callable[[Any], bool] | None = None) -> Any:
        """Call until it does not fail for a reason that passes, as transactional producers tell it, or as *passes* says.

        Raises KafkaException, or AnewError when it is time to end.
        """
        from confluent_kafka import KafkaException

        while True:
            try:
                return call()
            except KafkaException as problem:
                error = problem.args[0]
                if not (error.retriable() if passes is None else passes(error)):
                    raise
                self.tell(f"again, as {error}")
            if not self.goes_on() and time.monotonic() > (self._stopped_at or 0) + LONGEST_END_S:
                raise AnewError(f"{call} does not come to an end")
            pause(PAUSE_S)

    def tell(self, text: str) -> None:
        """Write to the client's log, unless it said so just now."""
        if text != self._told:
            print(f"{now_ns()} {self.name}: {text}", file=sys.stderr, flush=True)
        self._told = text


def unless_fatal(error: Any) -> bool:
    """Whether a consumer, which is not told, may try again."""
    return not error.fatal()


def pause(seconds: float) -> None:
    """Leave the processor to others for a moment."""
    _NEVER_SET.wait(seconds)


def now_ns() -> int:
    """The time as the history has it."""
    return time.monotonic_ns()


def main(orders_json: str) -> int:
    """Play a role; return the exit code."""
    from confluent_kafka import KafkaException

    orders = Orders(**json.loads(orders_json))
    module, function = ROLES[orders.role].split(":")
    client = Client(orders)
    try:
        getattr(import_module(module), function)(client)
    except (AnewError, KafkaException) as problem:
        client.tell(f"ends, as {problem}")
        return EXIT_ANEW
    return 0
