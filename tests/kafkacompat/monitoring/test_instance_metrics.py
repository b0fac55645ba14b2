"""The usage of instances on a whole broker: metrics, figures and the hourly record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkacompat.broker import Broker
from kafkacompat.config import BrokerConfig
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.config_changes import ConfigOperation, ConfigOperationType, ResourceChange
from kafkacompat.monitoring.table import ROWS
from kafkacompat.usage.topic import USAGE_TOPIC
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataRequestTopic
from kafkacompat.wire.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.record_batch import build_batch, read_records, split_batches
from tests.fakes.memory_host import MemoryHost
from tests.kafkacompat.monitoring.world import World, make_key
from tests.kafkacompat.test_broker_over_memory_network import HOST


class InstanceWorld(World):
    """A broker with the instances shop and bank, each with a topic."""

    def __init__(self, folder: Path, **properties: str) -> None:
        super().__init__(folder, **properties)
        self.run(self.broker.start())

    def restart(self) -> None:
        """Stop the broker, and start it again over its files."""
        self.run(self.broker.stop())
        host = MemoryHost(self.clock, self.network.at(HOST), files=self.files)
        self.broker = Broker(host, BrokerConfig(self.broker.config.given))
        self.run(self.broker.start())

    def create_instance(self, name: str, **given: str) -> bytes:
        """Create an instance and its topic t; returns the topic's id."""
        self.set_properties(name, cluster_id=f"{name}-id", secret="s", **given)
        return self.make_topic(f"{name}.t")

    def set_properties(self, name: str, **given: str) -> None:
        operations = [
            ConfigOperation(key.replace("_", "."), ConfigOperationType.SET, value) for key, value in given.items()
        ]
        change = ResourceChange(ResourceType.INSTANCE, name, operations)
        assert self.run(self.broker.controller.alter_configs([change])) == [None]

    def produce_to(self, topic_id: bytes, size_bytes: int = 500) -> ErrorCode:
        batch = build_batch([(int(self.clock.seconds() * 1000), None, b"v" * size_bytes, [])])
        data = TopicProduceData(topic_id=topic_id, partition_data=[PartitionProduceData(index=0, records=batch)])
        answer = self.ask(ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[data]))
        return ErrorCode(answer.responses[0].partition_responses[0].error_code)

    def read_records(self) -> list[dict[str, Any]]:
        """The values of the topic of hourly records."""
        opened = self.broker.replica_manager.find(USAGE_TOPIC, 0).log
        region = opened.read(0, 1 << 20)
        if region is None:
            return []
        data = region.pread(0, region.size_bytes)
        region.release()
        return [
            json.loads(bytes(record.value or b"")) for batch in split_batches(data) for record in read_records(batch)
        ]

    def pass_time(self, seconds: int) -> None:
        for _ in range(seconds // 20):
            self.clock.advance(20)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[InstanceWorld]:
    made = InstanceWorld(tmp_path)
    yield made
    made.connections.close()
    made.run(made.broker.stop())


def test_a_broker_without_instances_has_no_such_metrics_and_no_topic(world: InstanceWorld) -> None:
    assert not [name for name, _ in world.scrape() if name.startswith("kafkacompat_instance")]
    world.pass_time(3600)
    assert (world.broker.tenancy.storage, world.broker.tenancy.usage) == (None, None)
    assert USAGE_TOPIC not in world.broker.metadata.image.topics


def test_the_figures_of_an_instance(world: InstanceWorld) -> None:
    topic_id = world.create_instance("shop", limit_storage_bytes="600")
    assert world.produce_to(topic_id) is ErrorCode.NONE
    samples = world.scrape()
    documented = {row.sample_name for row in ROWS.values() if row.name.startswith("kafkacompat_instance_")}
    assert {name for name, _ in samples if name.startswith("kafkacompat_instance_")} == documented
    stored = samples[make_key("kafkacompat_instance_stored_bytes", tenant="shop")]
    assert stored > 500
    assert samples[make_key("kafkacompat_instance_produced_bytes_total", tenant="shop")] == stored
    assert samples[make_key("kafkacompat_instance_produced_records_total", tenant="shop")] == 1
    assert samples[make_key("kafkacompat_instance_partitions", tenant="shop")] == 1
    assert samples[make_key("kafkacompat_instance_storage_full", tenant="shop")] == 0
    assert world.produce_to(topic_id) is ErrorCode.NONE
    assert world.produce_to(topic_id) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert world.scrape()[make_key("kafkacompat_instance_storage_full", tenant="shop")] == 1
    usage = world.broker.tenancy.usage
    assert usage is not None and usage.describe("absent") is None
    figures = usage.describe("shop")
    assert figures is not None
    assert (figures["produced_records"], figures["topics"], figures["is_storage_full"]) == (2, 1, True)
    traffic = world.broker.instances.by_name["shop"].traffic
    assert traffic is not None and figures["throttled_ms"] == 0
    traffic.fetched.throttled_ms += 1500
    assert world.scrape()[make_key("kafkacompat_instance_throttle_seconds_total", tenant="shop")] == 1.5


def test_instances_beyond_the_limit_of_series_share_one(tmp_path: Path) -> None:
    world = InstanceWorld(tmp_path, kafkacompat_metrics_max_items="1")
    for name in ("bank", "shop", "zoo"):
        world.produce_to(world.create_instance(name))
    samples = world.scrape()
    assert samples[make_key("kafkacompat_instance_produced_records_total", tenant="bank")] == 1
    assert samples[make_key("kafkacompat_instance_produced_records_total", tenant="(other)")] == 2
    world.connections.close()
    world.run(world.broker.stop())


def test_a_topic_beyond_the_limit_is_not_created_by_its_first_use(
    world: InstanceWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world.create_instance("shop", limit_topics="1")
    answer = world.ask(MetadataRequest(topics=[MetadataRequestTopic(name="shop.u")], allow_auto_topic_creation=True))
    assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "shop.u" not in world.broker.metadata.image.topics
    assert "Cannot create" not in caplog.text


def test_each_hour_has_a_record(world: InstanceWorld) -> None:
    shop, bank = world.create_instance("shop"), world.create_instance("bank")
    world.produce_to(shop)
    world.produce_to(shop)
    world.produce_to(bank)
    world.pass_time(3620)
    records = {record["instance"]: record for record in world.read_records()}
    assert {name: record["produced_records"] for name, record in records.items()} == {"shop": 2, "bank": 1}
    assert records["shop"]["max_stored_bytes"] > records["bank"]["max_stored_bytes"] > 500
    assert records["shop"]["broker"] == 1


def test_a_restart_continues_the_hour(world: InstanceWorld) -> None:
    topic_id = world.create_instance("shop")
    world.produce_to(topic_id)
    world.restart()
    world.produce_to(topic_id)
    world.pass_time(3600)
    assert [(record["instance"], record["produced_records"]) for record in world.read_records()] == [("shop", 2)]


def test_a_lowered_retention_applies_to_existing_topics(world: InstanceWorld) -> None:
    world.create_instance("shop")
    world.set_properties("shop", limit_retention_max_ms="60000", limit_message_bytes="100")
    config = world.broker.replica_manager.find("shop.t", 0).log.config
    assert (config.retention_ms, config.max_message_bytes) == (60_000, 100)
    assert world.broker.effective.log_config_of("t").retention_ms == 7 * 86_400_000
