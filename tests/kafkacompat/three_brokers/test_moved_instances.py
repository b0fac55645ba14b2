"""An instance moves to another group of brokers while a producer and a consumer work through it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from kafkacompat.cli.cluster.folder import ClusterCommandError
from kafkacompat.cli.cluster.instance_relocation import Destination, InstanceRelocation
from kafkacompat.cli.cluster.reassigning import ClusterMover
from kafkacompat.cli.cluster.spread_run import SpreadPlan, SpreadRun
from kafkacompat.storage.segment.shared_files import FileRegion
from kafkacompat.wire.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from kafkacompat.wire.apis.init_producer_id import InitProducerIdRequest
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataRequestTopic
from kafkacompat.wire.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.record_batch import build_batch
from kafkacompat.wire.schema import Request
from tests.kafkacompat.three_brokers.instances import TenantClient, knows, make_groups, make_instance
from tests.kafkacompat.three_brokers.support import TURN_S, Cluster, values_of

FOUR = (1, 2, 3, 4)
PARTITIONS = 3
TURNS_A_LOOK = 10
NAMED = (ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER)
"""The errors that clients may notice while an instance moves."""


class OperatorConnection:
    """Sends the requests of a command to one broker, and lets time pass until it answers."""

    def __init__(self, cluster: Cluster, node: int) -> None:
        self._cluster = cluster
        self._node = node

    def find_version(self, request: type[Request]) -> int | None:
        return request.VERSIONS.last

    def request(self, request: Request, response: Any) -> Any:
        return self._cluster.ask(self._node, request)

    def close(self) -> None:
        pass


class Traffic:
    """A producer and a consumer of one topic of an instance, which find leaders by metadata as clients do."""

    def __init__(self, cluster: Cluster, client: TenantClient, topic: str) -> None:
        self._cluster = cluster
        self._client = client
        self._topic = topic
        self._topic_id = bytes(16)
        self._leaders: dict[int, int] = {}
        self._positions = dict.fromkeys(range(PARTITIONS), 0)
        self._sequences = dict.fromkeys(range(PARTITIONS), 0)
        self._bootstrap = 1
        producer = client.ask(1, InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0))
        self._producer = producer.producer_id, producer.producer_epoch
        self.errors: Counter[int] = Counter()
        self.written: list[bytes] = []
        self.read: list[bytes | None] = []
        self._refresh()

    def _refresh(self) -> None:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=self._topic)], allow_auto_topic_creation=False)
        response = self._client.ask(self._bootstrap, request)
        (topic,) = response.topics
        self._topic_id = topic.topic_id
        self._leaders = {partition.partition_index: partition.leader_id for partition in topic.partitions}
        visible = {broker.node_id for broker in response.brokers}
        assert visible >= set(self._leaders.values())
        self._bootstrap = min(visible)

    def step(self) -> None:
        """Write a record to each partition, and read what each has."""
        for index in range(PARTITIONS):
            value = f"{index}-{self._sequences[index]}".encode()
            while not self._produce(index, value):
                self._refresh()
                self._cluster.turn()
            self._sequences[index] += 1
            self.written.append(value)
            if not self._consume(index):
                self._refresh()

    def _produce(self, index: int, value: bytes) -> bool:
        batch = build_batch(
            [(int(self._cluster.clock.seconds() * 1000), b"k", value, [])],
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            base_sequence=self._sequences[index],
        )
        data = TopicProduceData(
            topic_id=self._topic_id, partition_data=[PartitionProduceData(index=index, records=batch)]
        )
        request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data])
        answer = self._client.ask(self._leaders[index], request).responses[0].partition_responses[0]
        self.errors[answer.error_code] += 1
        return bool(answer.error_code == 0)

    def _consume(self, index: int) -> bool:
        part = FetchPartition(partition=index, fetch_offset=self._positions[index], partition_max_bytes=1 << 20)
        topics = [FetchTopic(topic_id=self._topic_id, partitions=[part])]
        request = FetchRequest(max_wait_ms=10, max_bytes=1 << 20, topics=topics)
        answer = self._client.ask(self._leaders[index], request).responses[0].partitions[0]
        self.errors[answer.error_code] += 1
        if answer.error_code:
            return False
        records = answer.records
        if isinstance(records, FileRegion):
            region, records = records, records.pread(0, records.size_bytes)
            region.release()
        values = values_of(bytes(records or b""))
        self._positions[index] += len(values)
        self.read += values
        return True

    def finish(self) -> None:
        """Read to the end of all partitions."""
        for _ in range(20):
            self._refresh()
            for index in range(PARTITIONS):
                self._consume(index)


def start() -> tuple[Cluster, TenantClient]:
    cluster = Cluster(FOUR)
    make_groups(cluster, "a:1-2,b:3-4")
    make_instance(cluster, "shop", placement_group="a")
    make_instance(cluster, "blog", placement_group="a")
    client = TenantClient(cluster, "shop")
    assert client.create(1, "t", partitions=PARTITIONS).error_code == 0
    assert TenantClient(cluster, "blog").create(1, "t").error_code == 0
    for topic, count in (("shop.t", PARTITIONS), ("blog.t", 1)):
        for index in range(count):
            cluster.wait_for_leader(topic, index)
    return cluster, client


def make_relocation(cluster: Cluster, pause: Any = None) -> tuple[InstanceRelocation, SpreadRun]:
    addresses = [(f"broker-{node}", 9092) for node in FOUR]
    mover = ClusterMover(addresses, lambda host, port: OperatorConnection(cluster, int(host[-1])))
    run = SpreadRun(mover, pause or cluster.advance)
    return InstanceRelocation(mover, run), run


def folders_of(cluster: Cluster, node: int) -> list[str]:
    """List the folders of the instance's partitions on a broker's disk, with those that wait for their deletion."""
    return [name for name in cluster.files[node].list("/data") if name.startswith("shop.")]


@pytest.mark.parametrize("throttle", [None, 1_000_000])
def test_an_instance_moves_under_load(throttle: int | None) -> None:
    cluster, client = start()
    traffic = Traffic(cluster, client, "t")
    for _ in range(20):
        traffic.step()
    names: list[tuple[str, ...]] = []

    def pause(seconds: float) -> None:
        names.append(cluster.brokers[1].instances.by_name["shop"].instance.list("placement.group"))
        for _ in range(TURNS_A_LOOK):
            traffic.step()
            cluster.turn()

    relocation, run = make_relocation(cluster, pause)
    destination = relocation.find_destination("shop", "b")
    plans: list[SpreadPlan] = []

    def follow(plan: SpreadPlan) -> None:
        plans.append(plan)
        run.carry_out(plan, throttle, lambda copied: None)

    relocation.carry_out(destination, follow)
    assert set(names) == {("a", "b")}
    assert [len(plan.moves) for plan in plans] == [PARTITIONS]
    cluster.wait(lambda: all(knows(cluster, node, "shop", placement_group="b") for node in FOUR))
    for _ in range(20):
        traffic.step()
    traffic.finish()
    assert set(traffic.errors) <= set(NAMED)
    # Each partition has a new leader; producer and consumer share what they know of it.
    assert 0 < traffic.errors[ErrorCode.NOT_LEADER_OR_FOLLOWER] <= 4 * PARTITIONS
    assert sorted(traffic.read) == sorted(traffic.written)  # type: ignore[type-var]
    assert len(traffic.written) > PARTITIONS * 40
    topics = cluster.brokers[1].metadata.image.topics
    assert all(set(partition.replicas) == {3, 4} for partition in topics["shop.t"].partitions)
    assert set(topics["blog.t"].partitions[0].replicas) == {1, 2}
    assert Counter(partition.leader for partition in topics["shop.t"].partitions).most_common()[0][1] <= 2
    # The brokers of the old group delete what they had, and clients see them no more.
    cluster.advance(120)
    assert not folders_of(cluster, 1)
    assert not folders_of(cluster, 2)
    response = client.ask(1, MetadataRequest(topics=None))
    assert {broker.node_id for broker in response.brokers} == {3, 4}
    assert client.create(2, "later").error_code == 0
    cluster.wait(lambda: "shop.later" in cluster.brokers[1].metadata.image.topics)
    assert set(cluster.image("shop.later").replicas) == {3, 4}


def stored_bytes(cluster: Cluster, node: int) -> int:
    storage = cluster.brokers[node].tenancy.storage
    account = None if storage is None else storage.find_account("shop")
    return 0 if account is None else account.stored_bytes


def test_an_instance_stores_no_more_while_it_moves() -> None:
    """Otherwise a move could fill it, and its producers would be held back."""
    cluster, client = start()
    traffic = Traffic(cluster, client, "t")
    for _ in range(20):
        traffic.step()
    cluster.advance(1)
    (before,) = {stored_bytes(cluster, node) for node in (1, 2)}
    assert before > 0
    seen: list[tuple[int, ...]] = []

    def pause(seconds: float) -> None:
        for _ in range(int(seconds / TURN_S)):
            cluster.turn()
            seen.append(tuple(stored_bytes(cluster, node) for node in FOUR))

    relocation, run = make_relocation(cluster, pause)

    def follow(plan: SpreadPlan) -> None:
        run.carry_out(plan, None, lambda copied: None)

    relocation.carry_out(relocation.find_destination("shop", "b"), follow)
    cluster.advance(1)
    seen.append(tuple(stored_bytes(cluster, node) for node in FOUR))
    assert seen[-1] == (0, 0, before, before)
    assert max(map(sum, seen)) <= 2 * before


def test_a_move_that_was_interrupted_goes_on() -> None:
    cluster, client = start()
    relocation, run = make_relocation(cluster)
    destination = relocation.find_destination("shop", "b")

    def stop(plan: SpreadPlan) -> None:
        part = run.measure(plan.layout, plan.moves[:1], ())
        run._mover.begin(part.layout, part.moves)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        relocation.carry_out(destination, stop)
    cluster.wait(lambda: all(knows(cluster, node, "shop", placement_group="a,b") for node in FOUR))
    # A topic that is created in between is in the new group already.
    assert client.create(1, "between").error_code == 0
    assert client.create(1, "refused", replicas=3).error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    moved: list[int] = []
    move_to_the_end(cluster, "b", moved)
    assert moved[0] in (PARTITIONS - 1, PARTITIONS)
    topics = cluster.brokers[1].metadata.image.topics
    for name in ("shop.t", "shop.between"):
        assert all(set(partition.replicas) == {3, 4} for partition in topics[name].partitions)
    cluster.wait(lambda: all(knows(cluster, node, "shop", placement_group="b") for node in FOUR))
    moved.clear()
    move_to_the_end(cluster, "b", moved)
    assert moved == []


def move_to_the_end(cluster: Cluster, group: str, moved: list[int]) -> Destination:
    relocation, run = make_relocation(cluster)
    destination = relocation.find_destination("shop", group)

    def follow(plan: SpreadPlan) -> None:
        moved.append(len(plan.all_moves))
        run.carry_out(plan, None, lambda copied: None)

    relocation.carry_out(destination, follow)
    cluster.advance(1)
    return destination


def test_a_move_goes_back() -> None:
    cluster, _ = start()
    relocation, run = make_relocation(cluster)

    def stop(plan: SpreadPlan) -> None:
        run._mover.begin(plan.layout, plan.moves)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        relocation.carry_out(relocation.find_destination("shop", "b"), stop)
    move_to_the_end(cluster, "a", [])
    assert all(set(p.replicas) == {1, 2} for p in cluster.brokers[3].metadata.image.topics["shop.t"].partitions)
    assert knows(cluster, 1, "shop", placement_group="a")


def test_a_move_that_cannot_be_changes_nothing() -> None:
    cluster, _ = start()
    relocation, _ = make_relocation(cluster)
    with pytest.raises(ClusterCommandError, match="there is no group of brokers c"):
        relocation.find_destination("shop", "c")
    with pytest.raises(ClusterCommandError, match="there is no instance 'shopp'"):
        relocation.find_destination("shopp", "b")
    cluster.kill(4)
    cluster.wait(lambda: set(cluster.brokers[1].metadata.image.brokers) == {1, 2, 3})
    destination = relocation.find_destination("shop", "b")
    with pytest.raises(ClusterCommandError, match=r"the group b is too small for the instance shop: shop\.t-0 has 2"):
        relocation.carry_out(destination, lambda plan: None)
    assert knows(cluster, 1, "shop", placement_group="a")
