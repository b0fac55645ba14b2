"""Who administers instances, and what the clients of one notice of it."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.config_changes import ResourceChange
from kafkacompat.tenancy import instance_changes
from kafkacompat.wire.apis import alter_configs, incremental_alter_configs
from kafkacompat.wire.apis.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kafkacompat.wire.apis.fetch import FetchRequest
from kafkacompat.wire.apis.find_coordinator import FindCoordinatorRequest
from kafkacompat.wire.apis.init_producer_id import InitProducerIdRequest
from kafkacompat.wire.apis.list_config_resources import ListConfigResourcesRequest
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataRequestTopic
from kafkacompat.wire.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkacompat.wire.apis.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.kafkacompat.tenancy.world import SHOP_PORT, InstanceClient, InstanceWorld, get_topic_id
from tests.kafkacompat.test_broker_over_memory_network import PORT, make_fetch_request, records_of

INSTANCE = ResourceType.INSTANCE
GROUP, TRANSACTIONAL_ID = "billing", "orders-writer"


@pytest.fixture
def world(tmp_path: Path) -> InstanceWorld:
    world = InstanceWorld(tmp_path)
    creation = instance_changes.plan_creation({"listeners": f"PLAINTEXT://:{SHOP_PORT}"}, Random(1))
    alter(world, creation)
    return world


def alter(world: InstanceWorld, changes: instance_changes.Changes) -> None:
    change = ResourceChange(INSTANCE, "shop", changes)
    assert world.run(world.broker.controller.alter_configs([change])) == [None]
    world.clock.advance(0)


@pytest.mark.parametrize("name", ["shop", "bank", "", "shop.shop"])
def test_a_client_of_an_instance_cannot_reach_instances(world: InstanceWorld, name: str) -> None:
    client = world.open_client(SHOP_PORT)
    before = world.broker.metadata.image.configs
    for change in (
        incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=[
                incremental_alter_configs.AlterConfigsResource(
                    resource_type=INSTANCE,
                    resource_name=name,
                    configs=[
                        incremental_alter_configs.AlterableConfig(name="limit.topics", config_operation=0, value="1000")
                    ],
                )
            ]
        ),
        alter_configs.AlterConfigsRequest(
            resources=[
                alter_configs.AlterConfigsResource(
                    resource_type=INSTANCE,
                    resource_name=name,
                    configs=[alter_configs.AlterableConfig(name="limit.topics", value="1000")],
                )
            ]
        ),
    ):
        (result,) = client.ask(change).responses
        assert result.error_code
        assert "prefix" not in result.error_message
    wanted = DescribeConfigsResource(resource_type=INSTANCE, resource_name=name, configuration_keys=None)
    (described,) = client.ask(DescribeConfigsRequest(resources=[wanted])).results
    assert described.error_code and not described.configs
    every: list[int] = []
    for kinds in (every, [int(INSTANCE)]):
        listed = client.ask(ListConfigResourcesRequest(resource_types=kinds)).config_resources
        assert all(resource.resource_type != INSTANCE for resource in listed)
    assert world.broker.metadata.image.configs is before


def find_coordinator(world: InstanceWorld, client: InstanceClient, kind: int, key: str) -> None:
    """Wait until there is a coordinator, whose topic is created at the first request."""
    for _ in range(20):
        (coordinator,) = client.ask(FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])).coordinators
        if not coordinator.error_code:
            return
        world.clock.advance(1)
    raise AssertionError(f"there is no coordinator: error {coordinator.error_code}")


class Commits:
    """Commits and fetches the offset of one topic by one client."""

    def __init__(self, client: InstanceClient, topic: str) -> None:
        named = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        self._client, self._topic, self.topic_id = client, topic, get_topic_id(client.ask(named))

    def commit(self, offset: int) -> None:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        wanted = OffsetCommitRequestTopic(name=self._topic, topic_id=self.topic_id, partitions=[partition])
        answer = self._client.ask(OffsetCommitRequest(group_id=GROUP, topics=[wanted]))
        assert answer.topics[0].partitions[0].error_code == 0

    def fetch(self) -> int:
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=None)])
        (group,) = self._client.ask(request).groups
        return int(group.topics[0].partitions[0].committed_offset)

    def read(self, offset: int) -> bytes:
        request: FetchRequest = make_fetch_request(self._topic, self.topic_id, offset)
        return records_of(self._client.ask(request))


def test_adopted_things_go_on_in_the_instance(world: InstanceWorld) -> None:
    topic_id = world.make_topic("orders")
    for number in range(3):
        world.produce("orders", topic_id, b"value %d" % number)
    operator = world.open_client(PORT)
    outside = Commits(operator, "orders")
    initialize = InitProducerIdRequest(transactional_id=TRANSACTIONAL_ID, transaction_timeout_ms=1000)
    for kind, key in ((0, GROUP), (1, TRANSACTIONAL_ID)):
        find_coordinator(world, operator, kind, key)
    began = operator.ask(initialize)
    assert began.error_code == 0
    outside.commit(2)
    names = {"topic.names": ["orders"], "group.names": [GROUP], "transactional.id.names": [TRANSACTIONAL_ID]}
    alter(world, instance_changes.plan_adoption(names))

    inside = Commits(world.open_client(SHOP_PORT), "orders")
    assert inside.topic_id not in (outside.topic_id, bytes(16))
    assert inside.fetch() == 2
    assert b"value 2" in inside.read(2)
    inside.commit(3)
    assert outside.fetch() == 3
    assert outside.read(0) == inside.read(0)
    again = world.open_client(SHOP_PORT).ask(initialize)
    assert (again.error_code, again.producer_id) == (0, began.producer_id)
    assert again.producer_epoch == began.producer_epoch + 1
