"""confluent-kafka's AdminClient (librdkafka): every request it has, and its reading of the responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    ElectionType,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from compat_tests.brokers import Broker
from compat_tests.waiting import until


@pytest.fixture(scope="module")
def admin(broker: Broker) -> Iterator[Any]:
    yield AdminClient({"bootstrap.servers": broker.bootstrap})


@pytest.fixture
def topic(admin: Any, name: str) -> str:
    admin.create_topics([NewTopic(name, 2, 1)])[name].result(30)
    until(lambda: name in admin.list_topics(timeout=10).topics)
    return name


def take_answer(futures: dict[Any, Any]) -> Any:
    """The only answer of a request that asked for one thing."""
    (future,) = futures.values()
    return future.result(30)


def catch_code(futures: dict[Any, Any]) -> int:
    with pytest.raises(KafkaException) as problem:
        take_answer(futures)
    code: int = problem.value.args[0].code()
    return code


def produce(broker: Broker, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(count):
        producer.produce(topic, str(number), partition=0)
    assert producer.flush(30) == 0


def test_the_cluster(admin: Any, broker: Broker) -> None:
    cluster = admin.describe_cluster(include_authorized_operations=True).result(30)
    assert [(node.id, node.port) for node in cluster.nodes] == [(1, broker.port)]
    assert cluster.controller.id == 1 and cluster.cluster_id
    assert AclOperation.ALTER_CONFIGS in cluster.authorized_operations


def test_topics_are_described_and_grow(admin: Any, topic: str) -> None:
    described = admin.describe_topics(TopicCollection([topic]), include_authorized_operations=True)
    shown = take_answer(described)
    assert [(part.id, part.leader.id, [node.id for node in part.isr]) for part in shown.partitions] == [
        (0, 1, [1]),
        (1, 1, [1]),
    ]
    assert AclOperation.WRITE in shown.authorized_operations and shown.topic_id is not None
    take_answer(admin.create_partitions([NewPartitions(topic, 4)]))
    until(lambda: len(take_answer(admin.describe_topics(TopicCollection([topic]))).partitions) == 4)
    assert catch_code(admin.create_partitions([NewPartitions(topic, 2)])) == KafkaError.INVALID_PARTITIONS
    take_answer(admin.delete_topics([topic]))
    assert catch_code(admin.describe_topics(TopicCollection([topic]))) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_configs(admin: Any, topic: str) -> None:
    def described() -> tuple[str, int]:
        entry = take_answer(admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]))["retention.ms"]
        return entry.value, entry.source

    change = ConfigEntry("retention.ms", "7000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[change])
    take_answer(admin.incremental_alter_configs([resource]))
    until(lambda: described() == ("7000", 1))
    with pytest.warns(DeprecationWarning):
        futures = admin.alter_configs(
            [ConfigResource(ConfigResource.Type.TOPIC, topic, set_config={"segment.ms": "9"})]
        )
    take_answer(futures)
    until(lambda: described() == ("604800000", 5))
    node = take_answer(admin.describe_configs([ConfigResource(ConfigResource.Type.BROKER, "1")]))
    assert node["num.partitions"].value == "1" and node["num.partitions"].is_read_only


def test_offsets_and_deleted_records(admin: Any, broker: Broker, topic: str) -> None:
    produce(broker, topic, 10)
    part = TopicPartition(topic, 0)

    def offset(spec: Any) -> int:
        level = IsolationLevel.READ_COMMITTED
        listed_offset: int = take_answer(admin.list_offsets({part: spec}, isolation_level=level)).offset
        return listed_offset

    assert (offset(OffsetSpec.earliest()), offset(OffsetSpec.latest())) == (0, 10)
    assert take_answer(admin.delete_records([TopicPartition(topic, 0, 4)])).low_watermark == 4
    assert offset(OffsetSpec.earliest()) == 4


def test_groups(admin: Any, broker: Broker, topic: str) -> None:
    produce(broker, topic, 3)
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": topic, "auto.offset.reset": "earliest", "client.id": "me"}
    )
    consumer.subscribe([topic])
    assert len(consumer.consume(3, 30)) == 3
    described = take_answer(admin.describe_consumer_groups([topic], include_authorized_operations=True))
    assert (described.state, described.type) == (ConsumerGroupState.STABLE, ConsumerGroupType.CLASSIC)
    assert (described.partition_assignor, described.coordinator.port) == ("range", broker.port)
    (member,) = described.members
    assert (member.client_id, [part.partition for part in member.assignment.topic_partitions]) == ("me", [0, 1])
    assert AclOperation.READ in described.authorized_operations
    consumer.commit(asynchronous=False)
    consumer.close()
    listed = admin.list_consumer_groups(states={ConsumerGroupState.EMPTY}, types={ConsumerGroupType.CLASSIC})
    assert topic in [group.group_id for group in listed.result(30).valid]
    assert read_committed(admin, topic) == {0: 3}
    wanted = ConsumerGroupTopicPartitions(topic, [TopicPartition(topic, 0, 1), TopicPartition(topic, 1, 0)])
    take_answer(admin.alter_consumer_group_offsets([wanted]))
    assert read_committed(admin, topic) == {0: 1, 1: 0}
    take_answer(admin.delete_consumer_groups([topic]))
    assert catch_code(admin.delete_consumer_groups([topic])) == KafkaError.GROUP_ID_NOT_FOUND


def read_committed(admin: Any, group: str) -> dict[int, int]:
    offsets = take_answer(admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]))
    return {part.partition: part.offset for part in offsets.topic_partitions}


@pytest.mark.parametrize("kind", [ElectionType.PREFERRED, ElectionType.UNCLEAN])
def test_elections_that_are_not_needed(admin: Any, topic: str, kind: ElectionType) -> None:
    parts = [TopicPartition(topic, 0), TopicPartition(topic + "-absent", 0)]
    elected = admin.elect_leaders(kind, parts).result(30)
    codes = {part.topic: problem.code() for part, problem in elected.items()}
    assert codes == {topic: KafkaError.ELECTION_NOT_NEEDED, topic + "-absent": KafkaError.UNKNOWN_TOPIC_OR_PART}
    assert admin.elect_leaders(kind, None).result(30) == {}


def test_passwords(admin: Any, name: str) -> None:
    secret = UserScramCredentialUpsertion(name, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192), b"hunter2")
    take_answer(admin.alter_user_scram_credentials([secret]))
    until(lambda: name in admin.describe_user_scram_credentials().result(30))
    (info,) = take_answer(admin.describe_user_scram_credentials([name])).scram_credential_infos
    assert (info.mechanism, info.iterations) == (ScramMechanism.SCRAM_SHA_256, 8192)
    gone = UserScramCredentialDeletion(name, ScramMechanism.SCRAM_SHA_256)
    take_answer(admin.alter_user_scram_credentials([gone]))
    assert catch_code(admin.alter_user_scram_credentials([gone])) == KafkaError.RESOURCE_NOT_FOUND
    until(lambda: name not in admin.describe_user_scram_credentials().result(30))
    assert catch_code(admin.describe_user_scram_credentials([name])) == KafkaError.RESOURCE_NOT_FOUND


def test_acls_need_an_authorizer(admin: Any, name: str) -> None:
    literal, read, allow = ResourcePatternType.LITERAL, AclOperation.READ, AclPermissionType.ALLOW
    binding = AclBinding(ResourceType.TOPIC, name, literal, "User:x", "*", read, allow)
    assert catch_code(admin.create_acls([binding])) == KafkaError.SECURITY_DISABLED
    anything = ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    every = AclBindingFilter(ResourceType.ANY, None, *anything)
    assert catch_code(admin.delete_acls([every])) == KafkaError.SECURITY_DISABLED
    # The client keeps the error of this answer to itself.
    assert admin.describe_acls(every).result(30) == []
