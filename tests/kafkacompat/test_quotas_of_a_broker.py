"""Clients of a whole broker that have quotas, on one clock: their rates, and what others notice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kafkacompat.client.connections import BrokerConnections
from kafkacompat.client.settings import ConnectionSettings
from kafkacompat.quotas.limits import QuotaKind
from kafkacompat.wire.apis.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from kafkacompat.wire.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from kafkacompat.wire.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkacompat.wire.apis.list_groups import ListGroupsRequest
from kafkacompat.wire.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkacompat.wire.compiler import encode_message
from kafkacompat.wire.record_batch import build_batch
from kafkacompat.wire.schema import Request
from tests.kafkacompat.test_broker_over_memory_network import World

THROTTLED, OTHER = "throttled", "other"
QUOTA = 10_000
SPANS = 10
SPAN_S = 11.0
HEADER_BYTES = 2 + 2 + 4 + 2 + len(THROTTLED) + 1
"""API key, version, correlation id, client id and tags of a request."""


class QuotaWorld(World):
    """A broker with a topic, a client whose id has quotas, and another client."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.clients = {
            client_id: BrokerConnections(
                ConnectionSettings(client_id), self.network.at("broker-2"), self.clock, Random(3)
            )
            for client_id in (THROTTLED, OTHER)
        }
        self.run(self.broker.start())
        self.topic_id = self.make_topic("t")

    def set_quota(self, key: str, value: float, kind: str = "client-id", name: str | None = THROTTLED) -> None:
        entry = EntryData(entity=[EntityData(entity_type=kind, entity_name=name)], ops=[OpData(key=key, value=value)])
        assert self.ask(AlterClientQuotasRequest(entries=[entry])).entries[0].error_code == 0

    def call(self, client_id: str, request: Request, timeout_s: float = 10_000) -> Any:
        return self.run(self.clients[client_id].request(self.address, "requests", request, timeout_s=timeout_s))

    def make_produce(self, size_bytes: int) -> ProduceRequest:
        batch = build_batch([(int(self.clock.seconds() * 1000), None, b"v" * size_bytes, [])])
        parts = [PartitionProduceData(index=0, records=batch)]
        return ProduceRequest(
            acks=1, timeout_ms=30_000, topic_data=[TopicProduceData(topic_id=self.topic_id, partition_data=parts)]
        )

    def end(self) -> None:
        """Stop, and find nothing that is left."""
        for connections in (self.connections, *self.clients.values()):
            connections.close()
        self.run(self.broker.stop())
        assert self.clock.getDelayedCalls() == []


@pytest.fixture
def world(tmp_path: Path) -> Iterator[QuotaWorld]:
    made = QuotaWorld(tmp_path)
    yield made
    made.end()


def test_a_producer_has_its_quota_over_ten_spans_of_windows(world: QuotaWorld) -> None:
    world.set_quota("producer_byte_rate", QUOTA)
    request = world.make_produce(200)
    size_bytes = len(encode_message(request, 13)) + HEADER_BYTES
    begun, used, throttle_ms = world.clock.seconds(), 0, 0
    while world.clock.seconds() - begun < SPANS * SPAN_S:
        response = world.call(THROTTLED, request)
        used, throttle_ms = used + size_bytes, response.throttle_time_ms
        assert response.responses[0].partition_responses[0].error_code == 0
    elapsed = world.clock.seconds() - begun + throttle_ms / 1000
    assert used / elapsed == pytest.approx(QUOTA, rel=0.05)


def test_a_consumer_has_its_quota_over_ten_spans_of_windows(world: QuotaWorld) -> None:
    for _ in range(100):
        world.call(OTHER, world.make_produce(9_000))
    world.set_quota("consumer_byte_rate", QUOTA)
    begun, used, offset, throttle_ms = world.clock.seconds(), 0, 0, 0
    while world.clock.seconds() - begun < SPANS * SPAN_S:
        partition = FetchPartition(partition=0, fetch_offset=offset % 100, partition_max_bytes=1000)
        topics = [FetchTopic(topic_id=world.topic_id, partitions=[partition])]
        response = world.call(THROTTLED, FetchRequest(max_wait_ms=100, min_bytes=1, max_bytes=1000, topics=topics))
        throttle_ms = response.throttle_time_ms
        if response.responses:
            used += len(response.responses[0].partitions[0].records)
            offset += 1
    elapsed = world.clock.seconds() - begun + throttle_ms / 1000
    assert used / elapsed == pytest.approx(QUOTA, rel=0.05)


def test_a_throttled_client_delays_no_other(world: QuotaWorld) -> None:
    world.set_quota("producer_byte_rate", 10)
    assert world.call(THROTTLED, world.make_produce(5000)).throttle_time_ms > 100_000
    muted = world.clients[THROTTLED].request(world.address, "requests", ListGroupsRequest(), timeout_s=10_000)
    begun = world.clock.seconds()
    for _ in range(10):
        assert world.call(OTHER, world.make_produce(5000)).throttle_time_ms == 0
    assert world.clock.seconds() - begun < 1
    assert not muted.called
    muted.addErrback(lambda _: None)


def test_figures_count_throttle_times_by_kind(world: QuotaWorld) -> None:
    world.set_quota("producer_byte_rate", 1000)
    throttle_ms = world.call(THROTTLED, world.make_produce(15_000)).throttle_time_ms
    assert throttle_ms > 0
    clients = {kind: clients.by_client for kind, clients in world.broker.quotas.throttled.items() if clients.by_client}
    assert clients.keys() == {QuotaKind.PRODUCE}
    assert clients[QuotaKind.PRODUCE][("", THROTTLED)].total_ms == throttle_ms


def test_connections_wait_for_their_turn_by_a_dynamic_rate(world: QuotaWorld) -> None:
    change = AlterableConfig(name="max.connection.creation.rate", config_operation=0, value="1")
    resource = AlterConfigsResource(resource_type=4, resource_name="1", configs=[change])
    assert world.ask(IncrementalAlterConfigsRequest(resources=[resource])).responses[0].error_code == 0
    # The windows allow ten connections at once; each of these purposes has a connection of its own.
    begun = world.clock.seconds()
    for number in range(13):
        connections = world.clients[OTHER]
        world.run(connections.request(world.address, f"purpose-{number}", ListGroupsRequest(), timeout_s=30))
        if number == 9:
            assert world.clock.seconds() - begun < 1
    assert 2 < world.clock.seconds() - begun < 5
    assert world.broker.server.traffic["PLAINTEXT"].delayed.count == 3


def test_an_address_is_turned_away_beyond_its_rate(world: QuotaWorld) -> None:
    world.set_quota("connection_creation_rate", 1, "ip", None)
    refused = 0
    for number in range(13):
        asked = world.clients[OTHER].request(world.address, f"purpose-{number}", ListGroupsRequest(), timeout_s=0.5)
        try:
            world.run(asked)
        except Exception:
            refused += 1
    assert refused == 3
    traffic = world.broker.server.traffic["PLAINTEXT"]
    assert (traffic.turned_away["connection_creation_rate"], traffic.held.count) == (3, 3)
