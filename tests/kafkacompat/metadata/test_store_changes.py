"""A draft's changes of the store: what differs is written, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.client_entities import ClientConfig, Entity
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.image import MetadataImage, PartitionImage, TopicImage
from kafkacompat.metadata.store import ABSENT, StoreChange, StoreError
from kafkacompat.metadata.store_changes import StoreForm, apply_changes
from kafkacompat.wire.primitives import ZERO_UUID

UUID = bytes(range(16))
TOPIC = TopicImage("orders", UUID, tuple(PartitionImage(index, 1, 4, (1, 2), (1, 2), 3) for index in range(3)))
KEY = "/brokers/topics/orders"
CONFIG = (ResourceType.TOPIC, "orders")
QUOTA = ClientConfig({"producer_byte_rate": 1000.0})
ALICE: Entity = (("user", "alice"),)
CLIENT: Entity = (("client-id", "c"), ("user", "alice"))
TREE = StoreForm(controller_epoch=7, has_tree=True)
VERSIONS = {KEY: 2, **{f"{KEY}/partitions/{index}/state": 3 for index in range(3)}}


def name_state(index: int) -> str:
    return f"{KEY}/partitions/{index}/state"


def make_image(*topics: TopicImage, **other: Any) -> MetadataImage:
    return MetadataImage(**other).with_topics({topic.name: topic for topic in topics})


def change_partition(topic: TopicImage, index: int, **fields: Any) -> TopicImage:
    partitions = list(topic.partitions)
    partitions[index] = partitions[index]._replace(**fields)
    return topic._replace(partitions=tuple(partitions))


def decode_value(change: StoreChange) -> Any:
    assert change.value is not None
    return json.loads(change.value)


def test_a_new_topic_comes_before_its_states_and_after_its_configuration() -> None:
    draft = MetadataDraft(MetadataImage())
    draft.put_topic(TOPIC)
    draft.put_config(CONFIG, {"a": "1"})
    changes = draft.list_changes({})
    assert [change.key for change in changes] == [
        "/config/topics/orders",
        KEY,
        name_state(0),
        name_state(1),
        name_state(2),
    ]
    assert {change.expected_version for change in changes} == {ABSENT}
    assert decode_value(changes[2]) == {
        "controller_epoch": 1,
        "leader": 1,
        "version": 1,
        "leader_epoch": 4,
        "isr": [1, 2],
    }


def test_a_change_of_one_partition_is_one_change_with_the_controller_s_epoch() -> None:
    draft = MetadataDraft(make_image(TOPIC))
    draft.put_topic(change_partition(TOPIC, 1, leader=2, leader_epoch=5))
    (change,) = draft.list_changes(VERSIONS, form=TREE)
    assert (change.key, change.expected_version) == (name_state(1), 3)
    assert decode_value(change) == {"controller_epoch": 7, "leader": 2, "version": 1, "leader_epoch": 5, "isr": [1, 2]}


@pytest.mark.parametrize("fields", [{"replicas": (1, 2, 3), "adding_replicas": (3,)}, {"removing_replicas": (2,)}])
def test_a_reassignment_is_written_into_the_topic_alone(fields: dict[str, Any]) -> None:
    draft = MetadataDraft(make_image(TOPIC))
    draft.put_topic(change_partition(TOPIC, 1, **fields))
    (change,) = draft.list_changes(VERSIONS)
    assert (change.key, change.expected_version) == (KEY, 2)


def test_growth_writes_the_topic_and_the_new_states() -> None:
    draft = MetadataDraft(make_image(TOPIC))
    draft.put_topic(TOPIC._replace(partitions=(*TOPIC.partitions, PartitionImage(3, 1, 0, (1,), (1,), 0))))
    changes = draft.list_changes(VERSIONS)
    assert [(change.key, change.expected_version) for change in changes] == [(KEY, 2), (name_state(3), ABSENT)]


def test_a_topic_gets_its_id() -> None:
    old = TOPIC._replace(topic_id=ZERO_UUID)
    draft = MetadataDraft(make_image(old))
    draft.put_topic(TOPIC)
    assert draft.build_image().topics_by_id == {UUID: TOPIC}
    (change,) = draft.list_changes(VERSIONS)
    assert change.key == KEY and decode_value(change)["topic_id"] == "AAECAwQFBgcICQoLDA0ODw"


def test_a_topic_without_an_id_is_changed_and_deleted() -> None:
    old = TOPIC._replace(topic_id=ZERO_UUID)
    draft = MetadataDraft(make_image(old))
    draft.put_topic(change_partition(old, 0, leader=2))
    assert draft.topics_by_id == {}
    draft.remove_topic("orders")
    assert draft.topics == {}


def test_a_deleted_topic_is_removed_from_its_leaves_up() -> None:
    draft = MetadataDraft(make_image(TOPIC, configs={CONFIG: {"a": "1"}}))
    draft.remove_topic("orders")
    changes = draft.list_changes({**VERSIONS, "/config/topics/orders": 5})
    assert [(change.key, change.expected_version, change.value) for change in changes] == [
        (name_state(2), 3, None),
        (name_state(1), 3, None),
        (name_state(0), 3, None),
        (KEY, 2, None),
        ("/config/topics/orders", 5, None),
    ]


def test_a_state_that_was_never_written_is_not_removed() -> None:
    draft = MetadataDraft(make_image(TOPIC))
    draft.remove_topic("orders")
    assert [change.key for change in draft.list_changes({KEY: 2, name_state(1): 3})] == [name_state(1), KEY]


def test_a_reverted_change_is_no_change() -> None:
    draft = MetadataDraft(make_image(TOPIC, configs={CONFIG: {"a": "1"}}))
    draft.put_topic(change_partition(TOPIC, 1, leader=2))
    draft.put_topic(TOPIC)
    draft.put_config(CONFIG, {"a": "2"})
    draft.put_config(CONFIG, {"a": "1"})
    assert draft.list_changes(VERSIONS) == []


def test_a_change_keeps_fields_of_a_newer_release() -> None:
    draft = MetadataDraft(make_image(TOPIC, configs={CONFIG: {"a": "1"}}, clients={ALICE: QUOTA}))
    draft.put_topic(change_partition(TOPIC, 1, replicas=(1, 2, 3), leader=2))
    draft.put_config(CONFIG, {"a": "2"})
    draft.put_client(ALICE, ClientConfig({"consumer_byte_rate": 1.0}))
    keys = ("/config/topics/orders", "/config/users/alice", KEY, name_state(1))
    foreign = dict.fromkeys(keys, b'{"version":9,"new":[1]}')
    changes = draft.list_changes(VERSIONS, foreign)
    assert tuple(change.key for change in changes) == keys
    assert [(decode_value(change)["version"], decode_value(change)["new"]) for change in changes] == [(9, [1])] * 4


def test_a_change_over_damage_is_refused() -> None:
    draft = MetadataDraft(make_image(TOPIC))
    draft.put_topic(change_partition(TOPIC, 1, leader=2))
    with pytest.raises(StoreError, match=f"damaged at {name_state(1)}"):
        draft.list_changes(VERSIONS, {name_state(1): b"{"})


def test_in_a_tree_a_topic_without_configs_has_an_empty_value() -> None:
    draft = MetadataDraft(MetadataImage())
    draft.put_topic(TOPIC)
    draft.put_config(CONFIG, {})
    assert decode_value(draft.list_changes({}, form=TREE)[0]) == {"version": 1, "config": {}}
    assert draft.list_changes({})[0].key == KEY


def test_in_a_tree_changes_of_configs_are_announced() -> None:
    draft = MetadataDraft(make_image(TOPIC, configs={CONFIG: {"a": "1"}}, clients={ALICE: QUOTA}))
    draft.put_config(CONFIG, {"a": "2"})
    draft.put_config((ResourceType.BROKER, "1"), {})
    draft.put_client(ALICE, ClientConfig())
    draft.put_topic(change_partition(TOPIC, 1, leader=2))
    changes = draft.list_changes(VERSIONS, form=TREE)
    assert {change.key for change in changes if change.is_announced} == {"/config/topics/orders", "/config/users/alice"}
    assert not any(change.is_announced for change in draft.list_changes(VERSIONS))


def test_in_a_tree_the_last_config_leaves_an_empty_value() -> None:
    draft = MetadataDraft(make_image(TOPIC, configs={CONFIG: {"a": "1"}}))
    draft.put_config(CONFIG, {})
    versions = {"/config/topics/orders": 5}
    (change,) = draft.list_changes(versions, form=TREE)
    assert (change.expected_version, decode_value(change)) == (5, {"version": 1, "config": {}})
    assert draft.list_changes(versions) == [StoreChange("/config/topics/orders", 5, None)]


def test_in_a_tree_an_empty_value_goes_with_its_topic_and_is_not_written_twice() -> None:
    versions = {**VERSIONS, "/config/topics/orders": 0}
    draft = MetadataDraft(make_image(TOPIC))
    draft.put_config(CONFIG, {})
    assert draft.list_changes(versions, form=TREE) == []
    draft.remove_topic("orders")
    assert StoreChange("/config/topics/orders", 0, None) in draft.list_changes(versions, form=TREE)


def test_in_a_tree_a_user_stays_while_it_has_clients() -> None:
    draft = MetadataDraft(MetadataImage(clients={ALICE: QUOTA, CLIENT: QUOTA}))
    draft.put_client(ALICE, ClientConfig())
    versions = {"/config/users/alice": 4, "/config/users/alice/clients": 0, "/config/users/alice/clients/c": 1}
    (change,) = draft.list_changes(versions, form=TREE)
    assert (change.key, decode_value(change)) == ("/config/users/alice", {"version": 1, "config": {}})
    assert draft.list_changes(versions) == [StoreChange("/config/users/alice", 4, None)]


@pytest.mark.parametrize(
    ("other", "removed"),
    [
        ({}, ["/config/users/alice/clients/c", "/config/users/alice/clients", "/config/users/alice"]),
        ({ALICE: QUOTA}, ["/config/users/alice/clients/c", "/config/users/alice/clients"]),
        ({(("client-id", "d"), ("user", "alice")): QUOTA}, ["/config/users/alice/clients/c"]),
        ({(("client-id", "d"), ("user", "bob")): QUOTA, (("client-id", "c"),): QUOTA}, None),
    ],
)
def test_in_a_tree_the_last_client_takes_empty_parents_away(
    other: dict[Entity, ClientConfig], removed: list[str] | None
) -> None:
    draft = MetadataDraft(MetadataImage(clients={CLIENT: QUOTA, **other}))
    draft.put_client(CLIENT, ClientConfig())
    keys = ["/config/users/alice/clients/c", "/config/users/alice/clients", "/config/users/alice"]
    changes = draft.list_changes(dict.fromkeys(keys, 0), form=TREE)
    assert [change.key for change in changes] == (keys if removed is None else removed)
    assert {change.value for change in changes} == {None}


def test_a_user_is_written_before_its_clients() -> None:
    draft = MetadataDraft(MetadataImage())
    draft.put_client(CLIENT, QUOTA)
    draft.put_client(ALICE, QUOTA)
    keys = [change.key for change in draft.list_changes({}, form=TREE)]
    assert keys == ["/config/users/alice", "/config/users/alice/clients/c"]


def test_made_changes_are_the_next_versions() -> None:
    versions, foreign = {"/a": 1, "/b": 2}, {"/a": b"1", "/b": b"2"}
    apply_changes(
        versions, foreign, [StoreChange("/a", 1, b"3"), StoreChange("/b", 2, None), StoreChange("/c", -1, b"4")]
    )
    assert (versions, foreign) == ({"/a": 2, "/c": 0}, {"/a": b"3"})
