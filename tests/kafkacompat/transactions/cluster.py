"""Three brokers on one clock: their coordinators are real, their logs are dictionaries, and their requests go through the handlers.

A log in the cluster is one object, as if its replicas were always in sync; only its leader may use it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from itertools import count
from types import SimpleNamespace
from typing import Any, NamedTuple

from twisted.internet.defer import Deferred, fail, maybeDeferred, succeed

from kafkacompat.handlers.context import Pending
from kafkacompat.metadata.image import ImageHolder, MetadataImage, PartitionImage, TopicImage
from kafkacompat.storage.producers.verification import Guard
from kafkacompat.transactions.coordinator import TransactionCoordinator
from kafkacompat.transactions.marker_sender import MarkerSender
from kafkacompat.transactions.markers import MarkerWriter
from kafkacompat.transactions.settings import TransactionSettings
from kafkacompat.transactions.state import Ending
from kafkacompat.transactions.topic import TRANSACTION_TOPIC
from kafkacompat.transactions.transaction import ProducerIdentity, TopicPartition
from kafkacompat.transactions.verification import TransactionVerifier
from kafkacompat.wire.apis.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from kafkacompat.wire.apis.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.schema import Request, Response
from tests.fakes.coordinator_log import FakeCoordinatorLog
from tests.fakes.marked_partitions import FakePartition, FakePartitions
from tests.handlers.node import context_of, handle_request, make_services, reread_response
from tests.kafkacompat.groups.support import TurningClock, take_response

COORDINATED = 1
"""Partitions of the transactions topic: one, so that every transactional id is in it."""

VERSIONS: dict[type[Request], tuple[int, type[Response]]] = {
    WriteTxnMarkersRequest: (1, WriteTxnMarkersResponse),
    AddPartitionsToTxnRequest: (5, AddPartitionsToTxnResponse),
}
"""The version that brokers send each request in, and its response."""


class LedLog:
    """The transactions topic as one broker sees it; fits `CoordinatorLog`."""

    def __init__(self, shared: FakeCoordinatorLog, leads: Callable[[TopicPartition], bool]) -> None:
        self.topic, self.partition_count = TRANSACTION_TOPIC, shared.partition_count
        self.read = shared.read
        self.wait_until_committed = shared.wait_until_committed
        self._shared = shared
        self._leads = leads

    def append(self, partition: int, batch: bytes, guard: Guard | None = None) -> Deferred[None]:
        if not self._leads((TRANSACTION_TOPIC, partition)):
            return fail(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        return self._shared.append(partition, batch, guard)


class Sent(NamedTuple):
    """A request that waits in the network: `deliver` brings it to its broker, `lose` cuts its connection."""

    node_id: int
    request: Request
    response: Deferred[Any]
    cluster: Cluster

    def deliver(self) -> None:
        self.cluster.answer(self.node_id, self.request).addCallbacks(self.response.callback, self.response.errback)

    def lose(self) -> None:
        self.response.errback(ConnectionError("the connection ended"))


class Broker:
    """One broker: ``coordinator`` and ``verifier`` are what a test calls."""

    def __init__(self, cluster: Cluster, node_id: int) -> None:
        self.node_id = node_id
        self.cluster = cluster
        self.metadata = ImageHolder()
        log = LedLog(cluster.log, lambda partition: cluster.leaders[partition] == node_id)
        markers = MarkerWriter(cluster.clock, self.find, _append_now)
        self.coordinator = TransactionCoordinator(
            cluster.clock,
            TransactionSettings(),
            log,
            lambda: succeed(None),
            lambda: succeed(next(cluster.producer_ids)),
            markers,
            MarkerSender(node_id, self.metadata, markers, cluster.send, 30_000),
            cluster.is_deleted,
        )
        self.verifier = TransactionVerifier(node_id, self.metadata, lambda: self.coordinator, cluster.send, 30_000)
        self.services = make_services(
            clock=cluster.clock,
            metadata=self.metadata,
            coordinators=SimpleNamespace(transactions=self.coordinator, verifier=self.verifier),
        )

    def find(self, topic: str, index: int) -> FakePartition:
        leader = self.cluster.leaders.get((topic, index))
        if leader is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if leader != self.node_id:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return self.cluster.partitions.find(topic, index)

    def verify(self, producer: ProducerIdentity, *partitions: TopicPartition, name: str, add: bool = False) -> Any:
        """Ask the coordinator of a transaction, wherever it is; a Deferred if that takes time."""
        return self.verifier.verify(name, *producer, partitions, add=add)


def _append_now(partition: int, producer_id: int, is_commit: bool, append: Callable[[], object]) -> Deferred[ErrorCode]:
    return maybeDeferred(append).addCallbacks(lambda _: ErrorCode.NONE, lambda failure: failure.value.code)


class Cluster:
    """Brokers 1, 2 and 3. While a broker is in ``held``, requests to it wait in ``network``; those in ``down`` do not answer."""

    def __init__(self, leaders: dict[TopicPartition, int], coordinator: int = 1) -> None:
        self.clock = TurningClock()
        self.clock.advance(1_000_000)
        self.log = FakeCoordinatorLog(COORDINATED)
        self.partitions = FakePartitions()
        self.producer_ids = count(100)
        self.leaders = {**leaders, (TRANSACTION_TOPIC, 0): coordinator}
        self.epochs: defaultdict[TopicPartition, int] = defaultdict(int)
        self.known_deleted: set[TopicPartition] = set()
        self.held: set[int] = set()
        self.down: set[int] = set()
        self.network: list[Sent] = []
        self.requests: list[tuple[int, Request]] = []
        self.brokers = {node_id: Broker(self, node_id) for node_id in (1, 2, 3)}
        self.publish()
        self.brokers[coordinator].coordinator.on_election(0, 0)

    # Metadata

    def publish(self, *node_ids: int) -> None:
        """Let brokers learn who leads; without names all of them."""
        topics: defaultdict[str, list[PartitionImage]] = defaultdict(list)
        for (topic, index), leader in sorted(self.leaders.items()):
            topics[topic].append(PartitionImage(index, leader, self.epochs[topic, index], (1, 2, 3), (1, 2, 3), 0))
        images = {name: TopicImage(name, name.encode()[:16].ljust(16), tuple(led)) for name, led in topics.items()}
        for node_id in node_ids or self.brokers:
            self.brokers[node_id].metadata.publish(MetadataImage().with_topics(images))

    def elect(self, partition: TopicPartition, node_id: int) -> None:
        """Let another broker lead a partition; the image that the brokers have stays."""
        before = self.leaders[partition]
        self.leaders[partition] = node_id
        self.epochs[partition] += 1
        if partition[0] == TRANSACTION_TOPIC:
            self.brokers[before].coordinator.on_resignation(partition[1])
            self.brokers[node_id].coordinator.on_election(partition[1], self.epochs[partition])
            self.turn(3)

    def delete(self, partition: TopicPartition) -> None:
        """Delete the last partition of a topic; ZooKeeper does not know of it yet."""
        del self.leaders[partition]

    def is_deleted(self, topic: str, index: int) -> Deferred[bool]:
        return succeed((topic, index) in self.known_deleted)

    # The network

    def send(self, node_id: int, purpose: str, request: Request, timeout_s: float) -> Deferred[Any]:
        """Implements `SendRequest`."""
        self.requests.append((node_id, request))
        if node_id in self.down:
            return fail(ConnectionError("nobody listens"))
        if node_id not in self.held:
            return self.answer(node_id, request)
        self.network.append(Sent(node_id, request, Deferred(), self))
        return self.network[-1].response

    def answer(self, node_id: int, request: Request) -> Deferred[Any]:
        """Let a broker handle a request, both as they are on the wire."""
        version, response = VERSIONS[type(request)]
        answer = handle_request(request, context_of(version), self.brokers[node_id].services)
        waiting = answer.response if isinstance(answer, Pending) else succeed(answer)
        return waiting.addCallback(reread_response, response, version)

    def release(self) -> None:
        """Deliver what waits in the network, and hold nothing any more."""
        self.held.clear()
        waiting, self.network = self.network, []
        for sent in waiting:
            sent.deliver()

    # Time

    def turn(self, times: int = 1) -> None:
        for _ in range(times):
            self.clock.turn()

    def wait(self, seconds: int) -> None:
        self.clock.pump([0.5] * (2 * seconds))

    # A producer

    def begin(self, name: str, *partitions: TopicPartition) -> ProducerIdentity:
        """Begin a transaction, and write a record to each of its partitions."""
        coordinator = self.coordinator
        producer = take_response(coordinator.initialize(name, 60_000, None)).producer
        assert take_response(coordinator.add_partitions(name, producer, partitions, 0)) is ErrorCode.NONE
        for partition in partitions:
            assert self.partitions.all[partition].write(name, *producer)
        return producer

    def end(self, name: str, producer: ProducerIdentity, ending: Ending = Ending.COMMIT) -> ErrorCode:
        return take_response(self.coordinator.end(name, producer, ending, 0)).error_code

    @property
    def coordinator(self) -> TransactionCoordinator:
        """The coordinator that leads."""
        return self.brokers[self.leaders[TRANSACTION_TOPIC, 0]].coordinator

    def state(self, name: str) -> str:
        return self.coordinator.describe(name).transaction_state

    def committed(self, *partitions: TopicPartition) -> list[list[object]]:
        """What consumers of committed records read from each partition."""
        return [self.partitions.all[partition].committed for partition in partitions]
