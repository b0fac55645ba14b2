"""The whitelists of topics, at a whole broker in memory: for clients of the cluster and for those of instances."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.config_changes import ConfigOperation, ConfigOperationType, ResourceChange
from kafkacompat.wire.apis.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest
from kafkacompat.wire.apis.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kafkacompat.wire.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataRequestTopic
from kafkacompat.wire.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.record_batch import build_batch
from tests.kafkacompat.tenancy.world import SHOP_PORT, InstanceClient, InstanceWorld
from tests.kafkacompat.test_broker_over_memory_network import PORT

REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
INSIDE, OUTSIDE = "10.0.0.7", "10.9.0.7"


def set_configs(world: InstanceWorld, topic: str, **configs: str) -> str | None:
    """Give a topic these configs alone; return why they are refused, or None."""
    operations = [
        ConfigOperation(f"kafkacompat.whitelist.{name}", ConfigOperationType.SET, value)
        for name, value in configs.items()
    ]
    change = ResourceChange(ResourceType.TOPIC, topic, operations, replace=True)
    (outcome,) = world.run(world.broker.controller.alter_configs([change]))
    return None if outcome is None else outcome.detail


def create_topic(world: InstanceWorld, name: str) -> None:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    assert world.ask(CreateTopicsRequest(topics=[topic])).topics[0].error_code == 0


class TopicClient:
    """Uses one topic by a client."""

    def __init__(self, client: InstanceClient, topic: str) -> None:
        self.client = client
        self.topic = topic
        named = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        self.topic_id = bytes(client.ask(named).topics[0].topic_id)

    def produce(self) -> int:
        batch = build_batch([(1_700_000_000_000, b"k", b"v", [])])
        data = TopicProduceData(
            name=self.topic, topic_id=self.topic_id, partition_data=[PartitionProduceData(index=0, records=batch)]
        )
        answer = self.client.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data]))
        return int(answer.responses[0].partition_responses[0].error_code)

    def fetch(self, replica_id: int = -1) -> int:
        wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        topic = FetchTopic(topic=self.topic, topic_id=self.topic_id, partitions=[wanted])
        request = FetchRequest(max_wait_ms=100, min_bytes=0, topics=[topic], replica_id=replica_id)
        request.replica_state = ReplicaState(replica_id=replica_id)
        return int(self.client.ask(request).responses[0].partitions[0].error_code)

    def list_offsets(self) -> int:
        wanted = ListOffsetsPartition(partition_index=0, timestamp=-1)
        topic = ListOffsetsTopic(name=self.topic, partitions=[wanted])
        return int(self.client.ask(ListOffsetsRequest(topics=[topic])).topics[0].partitions[0].error_code)

    def use(self) -> dict[str, int]:
        return {"produce": self.produce(), "fetch": self.fetch(), "list": self.list_offsets()}


def expect(produce: int, consume: int) -> dict[str, int]:
    return {"produce": produce, "fetch": consume, "list": consume}


def test_produce_and_consume_are_checked_for_every_partition(tmp_path: Path) -> None:
    world = InstanceWorld(tmp_path)
    create_topic(world, "t")
    inside, outside = (TopicClient(world.open_client(PORT, host), "t") for host in (INSIDE, OUTSIDE))
    assert inside.use() == outside.use() == expect(0, 0)
    assert set_configs(world, "t", produce="10.0.0.0/16") is None
    assert (inside.use(), outside.use()) == (expect(0, 0), expect(REFUSED, 0))
    assert set_configs(world, "t", consume="10.0.0.0/16") is None
    assert (inside.use(), outside.use()) == (expect(0, 0), expect(0, REFUSED))
    # A client that claims to be a follower gains nothing.
    assert outside.fetch(replica_id=5) == REFUSED
    assert set_configs(world, "t", produce="none", consume="none") is None
    assert inside.use() == outside.use() == expect(REFUSED, REFUSED)
    create_topic(world, "free")
    assert TopicClient(outside.client, "free").use() == expect(0, 0)
    assert set_configs(world, "t") is None
    assert inside.use() == outside.use() == expect(0, 0)
    for user in (inside, outside):
        user.client.close()
    world.stop()


def test_the_topics_of_an_instance_are_checked_too(tmp_path: Path) -> None:
    world = InstanceWorld(tmp_path)
    world.set_instance("shop", listeners=f"PLAINTEXT://:{SHOP_PORT}")
    create_topic(world, "shop.t")
    inside, outside = (TopicClient(world.open_client(SHOP_PORT, host), "t") for host in (INSIDE, OUTSIDE))
    assert set_configs(world, "shop.t", produce="10.0.0.0/16", consume="10.9.0.0/16") is None
    assert (inside.use(), outside.use()) == (expect(0, REFUSED), expect(REFUSED, 0))
    for user in (inside, outside):
        user.client.close()
    world.stop()


def test_a_transaction_gets_no_partition_that_its_client_may_not_write_to(tmp_path: Path) -> None:
    world = InstanceWorld(tmp_path, **{"transaction.state.log.num.partitions": "1"})
    for name in ("t", "free"):
        create_topic(world, name)
    set_configs(world, "t", produce="10.0.0.0/16")
    codes = {}
    for host in (INSIDE, OUTSIDE):
        client = world.open_client(PORT, host, caps={AddPartitionsToTxnRequest.API_KEY: 3})
        topics = [AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in ("t", "free")]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="tx",
            v3_and_below_producer_id=1,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=topics,
        )
        answer = client.ask(request)
        codes[host] = {
            topic.name: topic.results_by_partition[0].partition_error_code
            for topic in answer.results_by_topic_v3_and_below
        }
        client.close()
    assert codes[OUTSIDE] == {"t": REFUSED, "free": ErrorCode.OPERATION_NOT_ATTEMPTED}
    assert REFUSED not in codes[INSIDE].values()
    world.stop()


@pytest.mark.parametrize("entry", ["10.0.0.1/8", "shop.example", "10.0.0.0/99"])
def test_bad_networks_are_refused(tmp_path: Path, entry: str) -> None:
    world = InstanceWorld(tmp_path)
    create_topic(world, "t")
    refusal = set_configs(world, "t", consume=f"192.0.2.0/24,{entry}")
    assert refusal is not None and refusal.startswith(f"kafkacompat.whitelist.consume is not valid at '{entry}': ")
    world.stop()
