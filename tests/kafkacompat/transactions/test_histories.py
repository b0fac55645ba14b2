"""Random histories: producers write, end their transactions or are fenced; the log and partitions fail for a while; the
coordinator is killed. Every transaction ends, and ends in all partitions as the response to its producer says.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from random import Random

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.transactions import transaction
from kafkacompat.transactions.answers import ProducerAnswer
from kafkacompat.transactions.transaction import ProducerIdentity, TopicPartition
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.transactions.support import World, take_response

PARTITIONS = [("t", 0), ("t", 1), ("u", 0), ("__consumer_offsets", 2)]
PASSING = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.KAFKA_STORAGE_ERROR]
ASK_AGAIN = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
}
STEPS = 200


@dataclass
class Written:
    """One transaction as its producer knows it: the records that it wrote, its requests, and their responses."""

    values: list[tuple[TopicPartition, object]] = field(default_factory=list)
    asked: bool | None = None
    reported_commit: bool | None = None


@dataclass
class Client:
    """A producer of transaction version ``version``. While it ``waits`` it sends nothing else."""

    name: str
    version: int
    producer: ProducerIdentity | None = None
    open: Written = field(default_factory=Written)
    added: set[TopicPartition] = field(default_factory=set)
    waits: bool = False


class Life:
    """A random history, decided by a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.world = World(request_timeout_ms=3000)
        self.clients = [Client(name, version) for name in ("a", "b") for version in (0, 2)]
        self.transactions: list[Written] = []
        self.lives = 0
        self.value = 0

    def live(self) -> None:
        steps = [self.begin, self.write, self.write, self.write, self.end, self.end, self.end, self.trouble]
        steps += [self.heal, self.heal, self.kill, self.pass_time, self.change_version]
        for _ in range(STEPS):
            self.rng.choice(steps)()
        self.heal()
        self.world.wait(200)

    # Producers

    def client(self) -> Client | None:
        client = self.rng.choice(self.clients)
        return None if client.waits else client

    def when(self, client: Client, answer: Deferred[ProducerAnswer], then: object) -> None:
        """Let a client wait for a response, unless the coordinator is killed before."""
        client.waits = True
        life = self.lives

        def answered(answer: ProducerAnswer) -> None:
            if life == self.lives:
                client.waits = False
                then(answer)  # type: ignore[operator]

        answer.addCallback(answered)

    def change_version(self) -> None:
        client = self.client()
        if client is not None:
            client.version = 2 - client.version

    def begin(self) -> None:
        client = self.client()
        if client is not None and (client.producer is None or self.rng.random() < 0.1):
            expected = client.producer if self.rng.random() < 0.5 else None
            self.forget(client)
            asked = self.world.ask(client.name, expected, timeout_ms=30_000)
            self.when(client, asked, partial(self.begun, client))

    def begun(self, client: Client, answer: ProducerAnswer) -> None:
        if not answer.error_code:
            client.producer = answer.producer

    def forget(self, client: Client) -> None:
        """Let the producer forget its transaction, if it has one."""
        client.producer = None
        self.next_transaction(client)

    def next_transaction(self, client: Client) -> None:
        if client.open.values:
            self.transactions.append(client.open)
        client.open, client.added = Written(), set()

    def write(self) -> None:
        client = self.client()
        if client is None or client.producer is None or client.open.asked is not None:
            return
        where = self.rng.choice(PARTITIONS)
        if where in client.added:
            self.added(client, where, ErrorCode.NONE)
            return
        client.waits = True
        code = self.world.coordinator.add_partitions(client.name, client.producer, [where], client.version)
        life = self.lives
        if isinstance(code, Deferred):
            code.addCallback(lambda code: self.added(client, where, code) if life == self.lives else None)
        else:
            self.added(client, where, code)

    def added(self, client: Client, where: TopicPartition, code: ErrorCode) -> None:
        client.waits = False
        if code in ASK_AGAIN:
            return
        if code or client.producer is None:
            self.forget(client)
            return
        client.added.add(where)
        # As a partition does before the first record of a transaction.
        if self.world.coordinator.verify(client.name, *client.producer, [where], add=False) != {where: ErrorCode.NONE}:
            return
        self.value += 1
        if self.world.partitions.all[where].write(self.value, *client.producer):
            client.open.values.append((where, self.value))

    def end(self) -> None:
        client = self.client()
        if client is None or client.producer is None or not client.added:
            return
        if client.open.asked is None:
            client.open.asked = self.rng.random() < 0.6
        answer = self.world.ending(client.producer, client.open.asked, name=client.name, version=client.version)
        self.when(client, answer, partial(self.ended, client))

    def ended(self, client: Client, answer: ProducerAnswer) -> None:
        if answer.error_code in ASK_AGAIN:
            return
        if answer.error_code:
            self.forget(client)
            return
        client.open.reported_commit = client.open.asked
        client.producer = answer.producer
        self.next_transaction(client)

    # The world

    def trouble(self) -> None:
        match self.rng.randrange(4):
            case 0:
                self.world.log.hold = True
            case 1:
                self.world.log.refuse_with = self.rng.choice(
                    [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR]
                )
            case 2:
                self.world.refuse(self.rng.choice(PARTITIONS), self.rng.choice(PASSING))
            case 3:
                self.world.partitions.all[self.rng.choice(PARTITIONS)].hold = True

    def heal(self) -> None:
        log = self.world.log
        log.hold, log.refuse_with = False, None
        while log.held:
            # The log decides on them in any order.
            held = log.held.pop(self.rng.randrange(len(log.held)))
            held.succeed() if self.rng.random() < 0.8 else held.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
        for partition in PARTITIONS:
            self.world.refuse(partition, None)
            self.world.partitions.all[partition].release()

    def kill(self) -> None:
        """Kill the process: writes under way may be in the log or not, and no client gets a response."""
        self.lives += 1
        log = self.world.log
        held, log.held = log.held, []
        for append in held:
            if self.rng.random() < 0.5:
                log.store(append.partition, append.batch)
        for partition in PARTITIONS:
            self.world.partitions.all[partition].held.clear()
            self.world.partitions.all[partition].hold = False
        log.hold, log.refuse_with = False, None
        self.world = self.world.restarted(request_timeout_ms=3000)
        for client in self.clients:
            client.waits = False

    def pass_time(self) -> None:
        self.world.wait(self.rng.choice([1, 1, 4, 15]))

    # The end

    def outcomes(self, transaction: Written) -> set[str]:
        partitions = self.world.partitions.all
        return {
            next(
                (kind for kind in ("committed", "aborted") if getattr(partitions[where], kind).count(value) == 1),
                "neither",
            )
            for where, value in transaction.values
        }


@pytest.mark.parametrize("seed", range(100))
def test_every_transaction_ends_in_all_partitions_as_reported(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 2:
        # A producer id soon has no epochs left.
        monkeypatch.setattr(transaction, "MAX_EPOCH", 4)
        monkeypatch.setattr(transaction, "LAST_EPOCH", 3)
    life = Life(seed)
    life.live()
    for client in life.clients:
        life.next_transaction(client)
    assert not [record for where in PARTITIONS for record in life.world.partitions.all[where].open]
    for written in life.transactions:
        outcomes = life.outcomes(written)
        if written.reported_commit is True:
            assert outcomes == {"committed"}
        elif written.reported_commit is False or not written.asked:
            assert outcomes == {"aborted"}
        else:
            assert outcomes in ({"committed"}, {"aborted"})
    assert take_response(life.world.ask("a")).error_code in (ErrorCode.NONE, ErrorCode.CONCURRENT_TRANSACTIONS)


def test_lives_are_full_of_transactions() -> None:
    """Without these events the test above would show little."""
    counts = {True: 0, False: 0, None: 0}
    for seed in range(10):
        life = Life(seed)
        life.live()
        for written in life.transactions:
            counts[written.reported_commit] += 1
    assert min(counts.values()) > 10
