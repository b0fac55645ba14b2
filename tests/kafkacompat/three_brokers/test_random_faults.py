"""Random faults under load, with a seed: whatever was acknowledged with acks=all is there, once and in order."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from kafkacompat.zookeeper.client import SessionState
from tests.kafkacompat.three_brokers.support import NODES, Cluster, values_of

TOPICS = ("a", "b")
PARTITIONS = 2
FAULT_S = (0.2, 4.0)
STEPS = 25
HEAL_S = 120.0
ACKS_TIMEOUT_S = 8.0


class Producer:
    """Appends to one partition, one record after the other: each has a number, and is sent once only.

    A record without an answer may be in the log or not. ``acknowledged`` are those with an answer, in their order.
    """

    def __init__(self, cluster: Cluster, topic: str, index: int, rng: Random) -> None:
        self._cluster = cluster
        self._topic, self._index = topic, index
        self._rng = rng
        self.sent = 0
        self.acknowledged: list[tuple[int, bytes]] = []
        self.running = True
        self._go_on()

    def _go_on(self) -> None:
        cluster = self._cluster
        if not self.running:
            return
        nodes = [node for node in cluster.brokers if self._is_leader(node)] or list(cluster.brokers)
        if not nodes:
            cluster.clock.callLater(0.1, self._go_on)
            return
        value = b"%s-%d-%d" % (self._topic.encode(), self._index, self.sent)
        self.sent += 1
        request = cluster.build_produce(self._topic, value, index=self._index)
        sending = cluster.send(self._rng.choice(nodes), request, timeout_s=ACKS_TIMEOUT_S)
        sending.addCallbacks(self._answered, lambda failure: None, callbackArgs=(value,))
        sending.addBoth(lambda _: cluster.clock.callLater(self._rng.uniform(0.01, 0.2), self._go_on))

    def _is_leader(self, node: int) -> bool:
        try:
            return self._cluster.partition(node, self._topic, self._index).is_leader
        except Exception:
            return False

    def _answered(self, response: Any, value: bytes) -> None:
        answer = response.responses[0].partition_responses[0]
        if not answer.error_code:
            self.acknowledged.append((answer.base_offset, value))


class Faults:
    """Does damage to a cluster, and repairs it."""

    def __init__(self, cluster: Cluster, rng: Random, *, lose_unsynced: bool) -> None:
        self._cluster = cluster
        self._rng = rng
        self._lose_unsynced = lose_unsynced
        self._cuts: list[Any] = []
        self._starting: dict[int, Any] = {}
        self._away: list[Any] = []
        self.noted: list[str] = []

    def do_one(self) -> None:
        names: tuple[str, ...] = (
            "kill",
            "kill",
            "stop",
            "expire",
            "disconnect",
            "cut",
            "cut_one_way",
            "lose_answer",
            "late",
            "repair",
        )
        names += ("kill_all",) if self._rng.random() < 0.2 else ()
        name = self._rng.choice(names)
        self.noted.append(f"{self._cluster.clock.seconds() - 1_700_000_000:.1f} {name}")
        actions: dict[str, Callable[[], None]] = {
            "kill": self._kill,
            "kill_all": self._kill_all,
            "stop": self._stop,
            "expire": self._expire,
            "disconnect": self._disconnect,
            "cut": self._cut,
            "cut_one_way": self._cut_one_way,
            "lose_answer": self._lose_answer,
            "late": lambda: self._cluster.zookeeper.delay_watches(self._rng.choice((0, 0.3, 2.0))),
            "repair": self.repair,
        }
        actions[name]()

    def _up(self) -> list[int]:
        return [node for node in self._cluster.brokers if node not in self._starting]

    def _kill(self) -> None:
        if up := self._up():
            self._kill_one(self._rng.choice(up))

    def _kill_all(self) -> None:
        for node in self._up():
            self._kill_one(node)

    def _kill_one(self, node: int) -> None:
        self.noted.append(f"  {node}")
        self._cluster.kill(node, expire=self._rng.random() < 0.5, lose_unsynced=self._lose_unsynced)
        self._restart_later(node)

    def _stop(self) -> None:
        if len(up := self._up()) == len(NODES):
            node = self._rng.choice(up)
            self.noted.append(f"  {node}")
            self._starting[node] = None
            stopping = self._cluster.begin_stop(node)

            def stopped(_: object) -> None:
                self._cluster.end_stop(node)
                self._restart_later(node)

            stopping.addCallback(stopped)

    def _restart_later(self, node: int) -> None:
        self._starting[node] = None
        self._cluster.clock.callLater(self._rng.choice((0, 0.5, 3.0, 25.0)), self._start, node)

    def _start(self, node: int) -> None:
        def started(result: object) -> object:
            del self._starting[node]
            return result

        self._cluster.begin(node).addBoth(started)

    def _expire(self) -> None:
        if up := self._up():
            self._cluster.zookeeper.expire(self._cluster.client_of(self._rng.choice(up)).session_id)

    def _disconnect(self) -> None:
        if up := self._up():
            client = self._cluster.client_of(self._rng.choice(up))
            self._cluster.zookeeper.disconnect(client, noticed_after_seconds=self._rng.choice((0, 2, 30)))
            self._away.append(client)
            self._cluster.clock.callLater(self._rng.choice((0.1, 5.0, 30.0)), self._cluster.zookeeper.reconnect, client)

    def _cut(self) -> None:
        a, b = self._rng.sample(NODES, 2)
        self._cuts += [self._link(a, b), self._link(b, a)]
        for link in self._cuts:
            link.cut()

    def _cut_one_way(self) -> None:
        self._cuts.append(self._link(*self._rng.sample(NODES, 2)))
        self._cuts[-1].cut()

    def _link(self, a: int, b: int) -> Any:
        return self._cluster.network.link(f"broker-{a}", f"broker-{b}")

    def _lose_answer(self) -> None:
        if up := self._up():
            self._cluster.zookeeper.lose_next_answer(self._cluster.client_of(self._rng.choice(up)))

    def repair(self) -> None:
        cuts, self._cuts = self._cuts, []
        for link in set(cuts):
            link.heal()

    def end(self) -> None:
        """Repair everything."""
        self.repair()
        self._cluster.zookeeper.delay_watches(0)
        self._cluster.wait(lambda: not self._starting, HEAL_S)
        for client in self._away:
            if client.state is not SessionState.CLOSED:
                self._cluster.zookeeper.reconnect(client)


@pytest.mark.parametrize("lose_unsynced", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_nothing_acknowledged_is_lost(seed: int, lose_unsynced: bool) -> None:
    run_with_faults(seed, lose_unsynced)


def run_with_faults(seed: int, lose_unsynced: bool) -> None:
    rng = Random(seed)
    properties = {"kafkacompat_acks_after": "fsync"} if lose_unsynced else {}
    cluster = Cluster(NODES, min_insync_replicas="2", controlled_shutdown_retry_backoff_ms="500", **properties)
    for topic in TOPICS:
        cluster.create(topic, partitions=PARTITIONS)
    producers = {
        (topic, index): Producer(cluster, topic, index, rng) for topic in TOPICS for index in range(PARTITIONS)
    }
    faults = Faults(cluster, rng, lose_unsynced=lose_unsynced)
    for _ in range(STEPS):
        cluster.advance(rng.uniform(*FAULT_S))
        faults.do_one()
    faults.end()
    for (topic, index), producer in producers.items():
        cluster.wait_for_leader(topic, index, seconds=HEAL_S)
        cluster.wait_for_in_sync(topic, NODES, index, seconds=HEAL_S)
        producer.running = False
    cluster.advance(ACKS_TIMEOUT_S + 2)
    for (topic, index), producer in producers.items():
        assert producer.acknowledged, faults.noted
        check_partition(cluster, topic, index, producer)


def check_partition(cluster: Cluster, topic: str, index: int, producer: Producer) -> None:
    leader = cluster.wait_for_leader(topic, index)
    logs = {node: cluster.read_log(node, topic, index) for node in NODES}
    assert all(log == logs[leader] for log in logs.values())
    by_offset = {offset: value for _, offset, value in logs[leader]}
    lost = [(offset, value) for offset, value in producer.acknowledged if by_offset.get(offset) != value]
    assert not lost, (topic, index, lost, leader)
    values = list(by_offset.values())
    assert len(values) == len(set(values))
    assert [value for _, value in producer.acknowledged] == [
        value for value in values if value in {value for _, value in producer.acknowledged}
    ]
    assert cluster.partition(leader, topic, index).high_watermark.offset == len(values)
    assert values_of(bytes(cluster.fetch(leader, topic, 0, index).records)) == values
