"""The functions that translate messages, built from all declarations."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from kafkacompat.tenancy.mapping import STEP_ELEMENTS, find_mapper
from kafkacompat.tenancy.names import FOREIGN, Computed, Names
from kafkacompat.wire import entities
from kafkacompat.wire.apis import API_NAMES, find_api
from kafkacompat.wire.apis.describe_groups import DescribeGroupsRequest
from kafkacompat.wire.apis.describe_topic_partitions import Cursor, DescribeTopicPartitionsResponse
from kafkacompat.wire.apis.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkacompat.wire.apis.list_groups import ListedGroup, ListGroupsResponse
from kafkacompat.wire.apis.metadata import MetadataResponse, MetadataResponseTopic
from kafkacompat.wire.apis.offset_fetch import OffsetFetchResponse, OffsetFetchResponseGroup, OffsetFetchResponseTopics
from kafkacompat.wire.consumer_protocol import ConsumerProtocolSubscription, read_subscription, write_subscription
from kafkacompat.wire.schema import Message
from tests.wire.random_messages import Mode, make_message, seeded_random, versions_of

CONSTANT = {entities.CLUSTER, entities.LOG_DIRECTORY, entities.TEXT}
"""All names of these kinds become one, or stay."""


@pytest.fixture
def names() -> Names:
    return Names("shop.", b"secret", "cluster", {})


def _keep(_: str, name: Any, owner: Any) -> Any:
    return name


def _translate(message: Message, version: int, translations: Any, resolve: Any = _keep) -> int:
    """Translate a message; return the number of steps."""
    mapper = find_mapper(type(message), version)
    return 0 if mapper is None else sum(1 for _ in mapper(message, translations, resolve))


@pytest.mark.parametrize("api_key", API_NAMES)
def test_every_message_keeps_its_meaning_there_and_back(names: Names, api_key: int) -> None:
    same = {entity: Computed(lambda name: name) for entity in CONSTANT}
    rng = seeded_random()
    for cls, version in versions_of(*find_api(api_key)):
        for mode in (Mode.DEFAULT, Mode.NULL, Mode.RANDOM, Mode.RANDOM, Mode.BOUNDARY, Mode.SMALL):
            message = make_message(cls, version, rng, mode)
            before = deepcopy(message)
            _translate(message, version, {**names.to_physical, **same})
            _translate(message, version, {**names.to_client, **same})
            assert message == before


def test_elements_with_a_foreign_name_are_left_out(names: Names) -> None:
    listed = [ListedGroup(group_id=name) for name in ("shop.g", "bank.g", "g")]
    response = ListGroupsResponse(groups=listed)
    _translate(response, 5, names.to_client)
    assert [group.group_id for group in response.groups] == ["g"]
    # Lists of others may hold the same elements.
    assert len(listed) == 3


def test_what_is_in_a_foreign_element_is_left_out_with_it(names: Names) -> None:
    groups = [
        OffsetFetchResponseGroup(
            group_id=group, topics=[OffsetFetchResponseTopics(name=name) for name in ("shop.orders", "bank.orders")]
        )
        for group in ("shop.g", "bank.g")
    ]
    response = OffsetFetchResponse(groups=groups)
    _translate(response, 9, names.to_client)
    assert [group.group_id for group in response.groups] == ["g"]
    assert [topic.name for topic in response.groups[0].topics] == ["orders"]


def test_null_names_stay_null(names: Names) -> None:
    response = MetadataResponse(topics=[MetadataResponseTopic(name=None)], cluster_id=None)
    _translate(response, 12, names.to_client)
    assert response.topics[0].name is None and response.cluster_id is None


def test_a_large_message_takes_steps_and_a_small_one_none(names: Names) -> None:
    small = DescribeGroupsRequest(groups=["g"])
    assert _translate(small, 5, names.to_physical) == 0
    large = DescribeGroupsRequest(groups=["g"] * (STEP_ELEMENTS * 10))
    assert _translate(large, 5, names.to_physical) == 10
    assert set(large.groups) == {"shop.g"} and len(large.groups) == STEP_ELEMENTS * 10


def test_a_large_subscription_takes_steps(names: Names) -> None:
    topics = [f"topic-{number}" for number in range(10_000)]
    metadata = write_subscription(ConsumerProtocolSubscription(topics=topics), 0)
    request = JoinGroupRequest(group_id="g", protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)])
    assert _translate(request, 5, names.to_physical) > 100
    assert read_subscription(request.protocols[0].metadata).topics == [f"shop.{topic}" for topic in topics]


def test_a_foreign_name_outside_of_a_list_is_not_shown() -> None:
    foreign = {entity: Computed(lambda _: FOREIGN) for entity in entities.ENTITIES}
    response = DescribeTopicPartitionsResponse(next_cursor=Cursor(topic_name="bank.orders"))
    _translate(response, 0, foreign)
    assert response.next_cursor is not None and response.next_cursor.topic_name == ""
