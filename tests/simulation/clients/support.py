"""What the tests of clients share: three brokers on one clock, clients beside them, and the verdict on their history."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from twisted.internet.defer import Deferred

from kafkacompat.history.checks import judge_history
from kafkacompat.history.events import READ_COMMITTED, READ_UNCOMMITTED, Event, HistoryPartition
from kafkacompat.history.index import History
from tests.kafkacompat.three_brokers.support import NODES, PORT, Cluster
from tests.simulation.clients.consumer import Consumer
from tests.simulation.clients.process import ClientProcess
from tests.simulation.clients.settings import ConsumerSettings

BOOTSTRAP = tuple((f"broker-{node}", PORT) for node in (1, 2, 3))
STOP_S = 90.0


class Clients:
    """A cluster with a topic `t` of two partitions, and the clients that a test starts."""

    def __init__(self, **properties: str) -> None:
        self.cluster = Cluster(NODES, min_insync_replicas="2", **properties)
        self.cluster.create("t", partitions=2)
        self.places = [HistoryPartition("t", index) for index in range(2)]
        self.history: list[Event] = []
        self._made: list[Any] = []

    def start(self, kind: Callable[..., Any], name: str, settings: Any, *further: Any) -> Any:
        """Start a client on a host of its own; *further* are the arguments of its kind."""
        client = kind(
            self.cluster.clock,
            self.cluster.network.at(f"client-{len(self._made)}"),
            Random(name),
            BOOTSTRAP,
            self.history.append,
            name,
            settings,
            *further,
        )
        self._made.append(client)
        client.start()
        return client

    def run(self, *work: Deferred[Any]) -> None:
        """Let time pass until everything is done."""
        for deferred in work:
            self.cluster.run(deferred, STOP_S)

    def judge(self, groups: Iterable[str] = (), places: Iterable[HistoryPartition] = ()) -> History:
        """Read everything again, and fail if a check of the history finds something, or if a client failed."""
        read = [*self.places, *places]
        for number, isolation in enumerate((READ_UNCOMMITTED, READ_COMMITTED)):
            settings = ConsumerSettings(isolation=isolation)
            reader: Consumer = self.start(Consumer, f"last-{number}.0", settings, read)
            self.run(reader.finish(groups=groups if number else ()))
        for client in self._made:
            process: ClientProcess = client.process
            assert not process.failures, (process.name, process.failures[0].getTraceback())
        history, verdicts = judge_history(self.history)
        for verdict in verdicts:
            assert not verdict.finding_count, (verdict.check.name, verdict.first)
        return history
