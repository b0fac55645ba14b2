"""What single APIs do for instances besides the translation of names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkacompat.config.resources import ResourceType
from kafkacompat.handlers import SERVED
from kafkacompat.handlers.tenants.new_topics import NO_CONFIG
from kafkacompat.handlers.tenants.table import TENANT_APIS
from kafkacompat.wire.apis import find_api
from kafkacompat.wire.apis.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkacompat.wire.apis.api_versions import ApiVersionsRequest
from kafkacompat.wire.apis.consumer_group_describe import ConsumerGroupDescribeRequest
from kafkacompat.wire.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kafkacompat.wire.apis.describe_groups import DescribeGroupsRequest
from kafkacompat.wire.apis.describe_log_dirs import DescribeLogDirsRequest
from kafkacompat.wire.apis.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest
from kafkacompat.wire.apis.describe_transactions import DescribeTransactionsRequest
from kafkacompat.wire.apis.elect_leaders import ElectLeadersRequest
from kafkacompat.wire.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from kafkacompat.wire.apis.find_coordinator import FindCoordinatorRequest
from kafkacompat.wire.apis.init_producer_id import InitProducerIdRequest
from kafkacompat.wire.apis.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataRequestTopic
from kafkacompat.wire.apis.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kafkacompat.wire.apis.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kafkacompat.wire.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    read_assignment,
    read_subscription,
    write_assignment,
    write_subscription,
)
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.primitives import format_uuid
from tests.handlers.tenants.world import World

LONG = "x" * 249


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    for name in ("shop", "bank"):
        world.make_instance(name)
    return world


def create_topics(world: World, instance: str | None, *names: str, partitions: int = 1, **configs: str) -> list[Any]:
    given = [CreatableTopicConfig(name=name.replace("_", "."), value=value) for name, value in configs.items()]
    topics = [
        CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=given) for name in names
    ]
    created = world.ask(instance, CreateTopicsRequest(topics=topics, timeout_ms=1000), 7)
    return list(created.topics)


def list_topics(world: World, instance: str | None, version: int = 12) -> list[str]:
    wanted: Any = [] if version == 0 else None
    return [topic.name for topic in world.ask(instance, MetadataRequest(topics=wanted), version).topics]


@pytest.mark.parametrize("version", range(14))
def test_all_topics_are_those_of_the_instance(world: World, version: int) -> None:
    assert list_topics(world, "bank", version) == []
    create_topics(world, "shop", "orders", "bills")
    create_topics(world, None, "ops")
    assert list_topics(world, "shop", version) == ["bills", "orders"]
    assert list_topics(world, "bank", version) == []


def test_a_page_of_topics_begins_after_a_deleted_one(world: World) -> None:
    empty = world.ask("bank", DescribeTopicPartitionsRequest(), 0)
    assert (empty.topics, empty.next_cursor) == ([], None)
    create_topics(world, "shop", "a", "c", "e")
    create_topics(world, "bank", "b", "d")
    seen, cursor = [], None
    while True:
        request = DescribeTopicPartitionsRequest(response_partition_limit=1, cursor=cursor)
        page = world.ask("shop", request, 0)
        seen += [topic.name for topic in page.topics]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == ["a", "c", "e"]
    for first, expected in (("b", ["c", "e"]), ("e", ["e"]), ("f", [])):
        request = DescribeTopicPartitionsRequest(cursor=Cursor(topic_name=first, partition_index=0))
        assert [topic.name for topic in world.ask("shop", request, 0).topics] == expected
    request = DescribeTopicPartitionsRequest(cursor=Cursor(topic_name="a", partition_index=-1))
    assert world.ask("shop", request, 0).topics == []


def test_a_topic_that_metadata_creates_has_the_counts_of_the_instance(world: World) -> None:
    world.make_instance("shop", num_partitions="3")
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in ("orders", LONG)])
    described = world.ask("shop", request, 9)
    assert [(topic.error_code, topic.name, len(topic.partitions)) for topic in described.topics] == [
        (0, "orders", 3),
        (0, LONG, 3),
    ]
    assert list_topics(world, "shop") == ["orders", LONG]


def test_an_instance_may_forbid_the_creation_by_metadata(world: World) -> None:
    world.make_instance("shop", auto_create_topics_enable="false")
    described = world.ask("shop", MetadataRequest(topics=[MetadataRequestTopic(name="orders")]), 3)
    assert described.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert list_topics(world, "shop") == []


def test_a_topic_without_counts_has_those_of_the_instance(world: World) -> None:
    world.make_instance("shop", num_partitions="2")
    (created,) = create_topics(world, "shop", "orders", partitions=-1)
    assert (created.error_code, created.num_partitions) == (0, 2)


def test_a_long_name_is_kept_with_the_topic_and_hidden(world: World) -> None:
    (created,) = create_topics(world, "shop", LONG)
    assert created.error_code == 0 and created.name == LONG
    assert not [config for config in created.configs if "instance" in config.name]
    (physical,) = [name for name in world.services.metadata.image.topics if name.startswith("shop.")]
    config = world.services.metadata.image.config(ResourceType.TOPIC, physical)
    assert config == {"kafkacompat.instance.topic": LONG}
    # The view of an instance is built anew when its properties change, as after a restart.
    world.make_instance("shop", description="changed")
    assert list_topics(world, "shop") == [LONG]


def test_clients_cannot_set_the_config_that_keeps_long_names(world: World) -> None:
    (created,) = create_topics(world, "shop", "orders", kafkacompat_instance_topic="bills")
    assert created.error_code == ErrorCode.INVALID_CONFIG and NO_CONFIG in created.error_message
    assert list_topics(world, "shop") == []


def test_topics_of_instances_collide_with_their_own_only(world: World) -> None:
    world.make_instance("shop_a")
    assert create_topics(world, None, "shop_a_b_c")[0].error_code == 0
    assert create_topics(world, "shop_a", "b.c")[0].error_code == 0
    assert create_topics(world, "shop", "a.b.c")[0].error_code == 0
    assert create_topics(world, "shop", "a_b.c")[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_log_directories_are_one_with_the_instances_partitions(tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    world = World(tmp_path, log_dirs=",".join(map(str, paths)))
    for name in ("shop", "bank"):
        world.make_instance(name)
        create_topics(world, name, "orders", partitions=4)
    create_topics(world, None, "ops")
    (result,) = world.ask("shop", DescribeLogDirsRequest(topics=None), 4).results
    assert (result.error_code, result.log_dir, result.total_bytes, result.usable_bytes) == (0, "/kafkacompat", -1, -1)
    (topic,) = result.topics
    assert topic.name == "orders"
    assert sorted(partition.partition_index for partition in topic.partitions) == [0, 1, 2, 3]
    assert len(world.ask(None, DescribeLogDirsRequest(topics=None), 4).results) == 2


def test_elections_in_all_partitions_are_those_of_the_instance(world: World) -> None:
    create_topics(world, "shop", "orders", partitions=2)
    create_topics(world, "bank", "bills")
    answer = world.ask("shop", ElectLeadersRequest(election_type=0, topic_partitions=None), 2)
    assert answer.error_code == 0
    assert [(topic.topic, topic.partition_result) for topic in answer.replica_election_results] == [("orders", [])]
    answer = world.ask("bank", ElectLeadersRequest(election_type=7, topic_partitions=None), 2)
    assert (answer.error_code, answer.replica_election_results) == (ErrorCode.INVALID_REQUEST, [])


def test_a_client_of_an_instance_is_no_replica(world: World) -> None:
    create_topics(world, "shop", "orders")
    wanted = [FetchTopic(topic="orders", partitions=[FetchPartition(partition=0, partition_max_bytes=100)])]
    refused = world.ask("shop", FetchRequest(replica_id=1, topics=wanted), 12)
    assert (refused.error_code, refused.responses) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
    assert world.ask("shop", FetchRequest(replica_id=1, topics=wanted), 6) is None
    assert world.ask("shop", FetchRequest(topics=wanted), 12).responses[0].partitions[0].error_code == 0


def test_a_fetch_session_is_of_its_instance_alone(world: World) -> None:
    for instance in ("shop", "bank", None):
        create_topics(world, instance, "orders")
    wanted = [FetchTopic(topic="orders", partitions=[FetchPartition(partition=0, partition_max_bytes=100)])]
    sessions = {
        instance: world.ask(instance, FetchRequest(session_epoch=0, topics=wanted), 12).session_id
        for instance in ("shop", "bank", None)
    }
    assert all(sessions.values())
    for owner, session_id in sessions.items():
        for instance in sessions:
            answer = world.ask(instance, FetchRequest(session_id=session_id, session_epoch=1), 12)
            if instance != owner:
                assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
                # Nor can it end the session.
                world.ask(instance, FetchRequest(session_id=session_id, session_epoch=-1), 12)
    for owner, session_id in sessions.items():
        answer = world.ask(owner, FetchRequest(session_id=session_id, session_epoch=2), 12)
        assert answer.error_code == 0


def test_api_versions_lists_what_instances_are_served(world: World) -> None:
    answer = world.ask("shop", ApiVersionsRequest(client_software_name="c", client_software_version="1"), 4)
    listed = {api.api_key for api in answer.api_keys}
    assert listed == TENANT_APIS.keys() & SERVED.keys()
    # Changes of the metadata do not show in the epoch of the features.
    create_topics(world, "bank", "orders")
    request = ApiVersionsRequest(client_software_name="c", client_software_version="1")
    assert world.ask("shop", request, 4).finalized_features_epoch == answer.finalized_features_epoch


def test_coordinators_are_named_by_the_clients_keys(world: World) -> None:
    world.make_instance("shop", group_names="g:legacy-g", transactional_id_names="tx:legacy-tx")
    for key_type, keys in ((0, ["g", "other"]), (1, ["tx", "other"])):
        answer = world.ask("shop", FindCoordinatorRequest(key_type=key_type, coordinator_keys=keys), 4)
        assert [(coordinator.key, coordinator.error_code) for coordinator in answer.coordinators] == [
            (key, 0) for key in keys
        ]


def test_a_transaction_names_the_offsets_topic(world: World) -> None:
    producer = world.ask("shop", InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000), 4)
    added = AddOffsetsToTxnRequest(
        transactional_id="tx",
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        group_id="g",
    )
    assert world.ask("shop", added, 3).error_code == 0
    (state,) = world.ask("shop", DescribeTransactionsRequest(transactional_ids=["tx"]), 0).transaction_states
    assert [(topic.topic, topic.partitions) for topic in state.topics] == [("__consumer_offsets", [0])]


def test_a_pattern_subscribes_to_the_instances_topics(world: World) -> None:
    for instance in ("shop", "bank", None):
        create_topics(world, instance, "orders", "bills")
    for pattern, expected in (("^ord.*$", {"orders"}), (".*", {"orders", "bills"}), ("shop.*|bank.*", set())):
        group = f"group of {pattern}"
        request = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id="member",
            rebalance_timeout_ms=1000,
            subscribed_topic_names=[],
            subscribed_topic_regex=pattern,
            topic_partitions=[],
        )
        answer = world.ask("shop", request, 1)
        assert answer.error_code == 0, answer
        described = world.ask("shop", MetadataRequest(topics=None), 12).topics
        ids = {topic.topic_id: topic.name for topic in described}
        assigned = answer.assignment.topic_partitions if answer.assignment else []
        assert {ids[topic.topic_id] for topic in assigned} == expected


def test_answers_do_not_change_what_the_broker_keeps(world: World) -> None:
    create_topics(world, "shop", "orders", LONG)
    keys = [(3, 12), (15, 5), (16, 4), (35, 4), (60, 2), (65, 0), (66, 2), (69, 1), (75, 0)]
    for key, version in keys:
        answers = [world.ask_bytes("shop", find_api(key).request(), version) for _ in range(3)]
        assert answers[0] and len(set(answers)) == 1, key


def test_a_classic_group_that_is_converted_keeps_the_instances_topics(tmp_path: Path) -> None:
    world = World(tmp_path, group_consumer_migration_policy="bidirectional")
    for instance in ("shop", "bank"):
        world.make_instance(instance)
        create_topics(world, instance, "orders", partitions=2)
    metadata = write_subscription(ConsumerProtocolSubscription(topics=["orders"]), 3)
    joining = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=1000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
    )
    joining.member_id = world.ask("shop", joining, 5).member_id
    joined = world.ask("shop", joining, 5)
    assert read_subscription(joined.members[0].metadata).topics == ["orders"]
    assigned = ConsumerProtocolAssignment(assigned_partitions=[TopicPartition(topic="orders", partitions=[0, 1])])
    syncing = SyncGroupRequest(
        group_id="g",
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=[SyncGroupRequestAssignment(member_id=joined.member_id, assignment=write_assignment(assigned, 1))],
    )
    assert read_assignment(world.ask("shop", syncing, 3).assignment) == assigned
    (described,) = world.ask("shop", DescribeGroupsRequest(groups=["g"]), 5).groups
    assert read_subscription(described.members[0].member_metadata).topics == ["orders"]
    assert read_assignment(described.members[0].member_assignment) == assigned
    beat = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="new",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["orders"],
        topic_partitions=[],
    )
    assert world.ask("shop", beat, 1).error_code == 0
    (group,) = world.ask("shop", ConsumerGroupDescribeRequest(group_ids=["g"]), 1).groups
    assert group.error_code == 0 and len(group.members) == 2
    targets = [part for member in group.members for part in member.target_assignment.topic_partitions]
    assert {part.topic_name for part in targets} == {"orders"}
    assert {name for member in group.members for name in member.subscribed_topic_names} == {"orders"}
    assert world.ask("bank", ConsumerGroupDescribeRequest(group_ids=["g"]), 1).groups[0].error_code == (
        ErrorCode.GROUP_ID_NOT_FOUND
    )


def test_no_error_message_translates_the_id_of_anothers_topic(world: World) -> None:
    """A client that knows the brokers' id of a topic would get the form that names the topic in its own instance."""
    create_topics(world, "bank", "secret")
    (own,) = create_topics(world, "shop", "orders")
    image = world.services.metadata.image
    for physical, shown in (("bank.secret", None), ("shop.orders", format_uuid(own.topic_id))):
        physical_id = format_uuid(image.topics[physical].topic_id)
        (echoed,) = create_topics(world, "shop", f"the id {physical_id} !")
        assert echoed.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert (shown or physical_id) in echoed.error_message


def test_markers_are_held_back_while_the_instance_is_full(world: World) -> None:
    create_topics(world, "shop", "orders")
    topics = [WritableTxnMarkerTopic(name="orders", partition_indexes=[9, 0])]
    marker = WritableTxnMarker(
        producer_id=1, producer_epoch=0, transaction_result=False, topics=topics, coordinator_epoch=0
    )
    request = WriteTxnMarkersRequest(markers=[marker])

    def write() -> list[int]:
        ((topic,),) = (answered.topics for answered in world.ask("shop", request, 1).markers)
        assert topic.name == "orders"
        return [partition.error_code for partition in topic.partitions]

    assert write() == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0]
    world.make_instance("shop", limit_storage_bytes="1")
    assert write() == [ErrorCode.NOT_ENOUGH_REPLICAS] * 2
