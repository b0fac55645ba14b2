"""Random histories of three brokers: every transaction is in all of its partitions or in none, whoever leads meanwhile."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from kafkacompat.transactions.state import Ending
from kafkacompat.transactions.topic import TRANSACTION_TOPIC
from kafkacompat.transactions.transaction import ProducerIdentity, TopicPartition
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.groups.support import is_waiting, take_response
from tests.kafkacompat.transactions.cluster import Cluster

PARTITIONS = [("t", index) for index in range(4)]
COORDINATED = (TRANSACTION_TOPIC, 0)
NAMES = ("x", "y", "z")
STEPS = 150


@dataclass
class Transaction:
    """What a producer knows of its transaction; ``decision`` is what the coordinator has confirmed."""

    value: str
    producer: ProducerIdentity
    partitions: list[TopicPartition]
    decision: Ending | None = None


class History:
    """Producers, and a network and leaders that change at random."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.cluster = Cluster({partition: 1 + index % 3 for index, partition in enumerate(PARTITIONS)})
        self.current: dict[str, Transaction] = {}
        self.all: list[Transaction] = []

    def run(self) -> None:
        actions = [
            *[self.begin] * 4,
            *[self.end] * 4,
            *[self.let_time_pass] * 3,
            *[self.deliver] * 3,
            *[self.publish] * 2,
            self.move_leader,
            self.move_coordinator,
            self.repeat_epoch,
            self.hold,
            self.cut_off,
        ]
        for _ in range(STEPS):
            self.rng.choice(actions)()
        self.settle()

    # Producers

    def begin(self) -> None:
        name = self.rng.choice(NAMES)
        coordinator = self.cluster.coordinator
        answer = take_response(coordinator.initialize(name, 60_000, None))
        if answer.error_code:
            return
        partitions = self.rng.sample(PARTITIONS, self.rng.randint(1, 4))
        added = coordinator.add_partitions(name, answer.producer, partitions, 0)
        assert not is_waiting(added)
        if take_response(added):
            return
        transaction = Transaction(f"{name}{len(self.all)}", answer.producer, partitions)
        for partition in partitions:
            assert self.cluster.partitions.all[partition].write(transaction.value, *answer.producer)
        self.current[name] = transaction
        self.all.append(transaction)

    def end(self) -> None:
        name = self.rng.choice(NAMES)
        transaction = self.current.get(name)
        if transaction is None or transaction.decision is not None:
            return
        ending = self.rng.choice(list(Ending))
        code = self.cluster.end(name, transaction.producer, ending)
        if code is ErrorCode.NONE:
            transaction.decision = ending

    # The cluster

    def let_time_pass(self) -> None:
        self.cluster.clock.pump([self.rng.choice([0.01, 0.1, 1.0])] * 5)

    def publish(self) -> None:
        self.cluster.publish(self.rng.randint(1, 3))

    def move_leader(self) -> None:
        self.cluster.elect(self.rng.choice(PARTITIONS), self.rng.choice([-1, 1, 2, 3]))

    def move_coordinator(self) -> None:
        self.cluster.elect(COORDINATED, self.rng.randint(1, 3))

    def repeat_epoch(self) -> None:
        """Let the coordinator lead in the next epoch without a change of leader."""
        self.cluster.epochs[COORDINATED] += 1
        self.cluster.coordinator.on_election(0, self.cluster.epochs[COORDINATED])

    def hold(self) -> None:
        self.cluster.held ^= {self.rng.randint(1, 3)}

    def cut_off(self) -> None:
        self.cluster.down ^= {self.rng.randint(1, 3)}

    def deliver(self) -> None:
        """Bring a request to its broker, or not, and its response, or not; or keep a request that its sender gave up."""
        if not self.cluster.network:
            return
        sent = self.cluster.network.pop(self.rng.randrange(len(self.cluster.network)))
        fate = self.rng.choice(["deliver", "lose request", "lose response", "keep"])
        if sent.response.called or fate == "lose response":
            self.cluster.answer(sent.node_id, sent.request)
        if sent.response.called:
            return
        if fate == "deliver":
            sent.deliver()
            return
        sent.lose()
        if fate == "keep":
            self.cluster.network.append(sent)

    # The end

    def settle(self) -> None:
        """Let everything work again, and end every transaction."""
        cluster = self.cluster
        for partition in PARTITIONS:
            cluster.elect(partition, self.rng.randint(1, 3))
        cluster.down.clear()
        cluster.held.clear()
        cluster.publish()
        while cluster.network:
            sent = cluster.network.pop()
            if sent.response.called:
                cluster.answer(sent.node_id, sent.request)
            else:
                sent.deliver()
        for name in NAMES:
            for _ in range(20):
                if not take_response(cluster.coordinator.initialize(name, 60_000, None)).error_code:
                    break
                cluster.wait(6)
            else:
                raise AssertionError(f"{name} never ends")


@pytest.mark.parametrize("seed", range(60))
def test_a_transaction_is_in_all_of_its_partitions_or_in_none(seed: int) -> None:
    history = History(seed)
    history.run()
    partitions = history.cluster.partitions.all
    assert history.all
    assert all(not partition.open for partition in partitions.values())
    for transaction in history.all:
        written = [partitions[where].committed.count(transaction.value) for where in transaction.partitions]
        dropped = [partitions[where].aborted.count(transaction.value) for where in transaction.partitions]
        assert set(written) == ({1} if transaction.decision is Ending.COMMIT else {0}), transaction
        assert set(dropped) == ({0} if transaction.decision is Ending.COMMIT else {1}), transaction
