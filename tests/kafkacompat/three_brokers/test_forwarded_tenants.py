"""Requests of instances' clients that only the controller carries out: other brokers forward them, with the same answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafkacompat.config.resources import ResourceType
from kafkacompat.handlers.controller_apis import CONTROLLER_APIS
from kafkacompat.handlers.tenants.table import TENANT_APIS
from kafkacompat.security.principals import Principal
from kafkacompat.server.emulation import emulate_release
from kafkacompat.wire.apis import alter_configs, incremental_alter_configs
from kafkacompat.wire.apis.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from kafkacompat.wire.apis.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kafkacompat.wire.apis.api_versions import ApiVersionsRequest
from kafkacompat.wire.apis.create_acls import AclCreation, CreateAclsRequest
from kafkacompat.wire.apis.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafkacompat.wire.apis.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kafkacompat.wire.apis.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kafkacompat.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kafkacompat.wire.apis.elect_leaders import ElectLeadersRequest, TopicPartitions
from kafkacompat.wire.apis.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kafkacompat.wire.schema import Request, Struct
from tests.kafkacompat.three_brokers.instances import TenantClient, make_instance
from tests.kafkacompat.three_brokers.support import NODES, Cluster

ALICE = Principal("User", "shop.alice")
LONG_NAME = "n" * 249
TIMEOUT_MS = 20_000
NOT_COMPARED = ("topic_id", "throttle_time_ms")
"""Fields that differ from cluster to cluster."""
FORWARDED = [key for key in sorted(TENANT_APIS) if key in CONTROLLER_APIS]


def build_creations() -> Iterator[Request]:
    def create(*topics: CreatableTopic, validate_only: bool = False) -> CreateTopicsRequest:
        return CreateTopicsRequest(topics=list(topics), timeout_ms=TIMEOUT_MS, validate_only=validate_only)

    def plan(name: str, partitions: int = 1, replicas: int = 2, **configs: str) -> CreatableTopic:
        entries = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
        return CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas, configs=entries)

    yield create(plan("good", 3, retention_ms="1000"), plan("a..b"), plan("shop.good"), plan(LONG_NAME))
    yield create(plan("good"), plan("", 1), plan("ä"), plan("x", 0), plan("y", 1, 9), plan("z", cleanup_policy="?"))
    yield create(plan("twice"), plan("twice"), plan(".."), plan("n" * 250))
    yield create(plan("planned"), validate_only=True)
    assignment = [CreatableReplicaAssignment(partition_index=0, broker_ids=[1, 77])]
    yield create(CreatableTopic(name="w", num_partitions=-1, replication_factor=-1, assignments=assignment))
    yield create()


def build_growths() -> Iterator[Request]:
    def grow(name: str, count: int, replicas: list[int] | None = None) -> CreatePartitionsTopic:
        assignments = None if replicas is None else [CreatePartitionsAssignment(broker_ids=replicas)]
        return CreatePartitionsTopic(name=name, count=count, assignments=assignments)

    topics = [grow("good", 4), grow("good.missing", 2), grow("a..b", 1), grow("", 3), grow("a..b", 1)]
    yield CreatePartitionsRequest(topics=topics, timeout_ms=TIMEOUT_MS)
    yield CreatePartitionsRequest(topics=[grow("good", 6, [2, 77])], timeout_ms=TIMEOUT_MS)


def build_alterations() -> Iterator[Request]:
    kinds = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.INSTANCE, 55)
    for kind in kinds:
        for name, key, value in (("good", "retention.ms", "5"), ("missing", "retention.ms", "?"), ("", "x", "1")):
            change = incremental_alter_configs.AlterableConfig(name=key, config_operation=0, value=value)
            resource = incremental_alter_configs.AlterConfigsResource(
                resource_type=kind, resource_name=name, configs=[change]
            )
            yield incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource])


def build_old_alterations() -> Iterator[Request]:
    for kind in (ResourceType.TOPIC, ResourceType.INSTANCE):
        for name, value in (("good", "6"), ("missing", "?")):
            change = alter_configs.AlterableConfig(name="retention.ms", value=value)
            resource = alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[change])
            yield alter_configs.AlterConfigsRequest(resources=[resource])


def build_elections() -> Iterator[Request]:
    for kind in (0, 1, 7):
        topics = [TopicPartitions(topic="good", partitions=[0, 99]), TopicPartitions(topic="missing", partitions=[0])]
        yield ElectLeadersRequest(election_type=kind, topic_partitions=topics, timeout_ms=TIMEOUT_MS)
    yield ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=TIMEOUT_MS)


def build_reassignment_lists() -> Iterator[Request]:
    yield ListPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=None)
    topics = [ListPartitionReassignmentsTopics(name="good", partition_indexes=[0, 99])]
    yield ListPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=topics)


def build_acls() -> Iterator[Request]:
    def allow(kind: int, name: str, pattern: int, operation: int = 3) -> AclCreation:
        return AclCreation(
            resource_type=kind,
            resource_name=name,
            resource_pattern_type=pattern,
            principal="User:bob",
            host="*",
            operation=operation,
            permission_type=3,
        )

    yield CreateAclsRequest(
        creations=[allow(2, "good", 3), allow(2, "*", 3), allow(3, "g", 4), allow(4, "kafka-cluster", 3, 12)]
    )
    yield CreateAclsRequest(
        creations=[allow(2, "", 3), allow(99, "x", 3), allow(2, "good", 1), allow(2, "good", 3, 99)]
    )


def build_acl_deletions() -> Iterator[Request]:
    for kind, name, pattern in ((2, "good", 3), (1, None, 1), (2, None, 1), (2, "missing", 2), (99, None, 3)):
        wanted = DeleteAclsFilter(
            resource_type_filter=kind,
            resource_name_filter=name,
            pattern_type_filter=pattern,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        )
        yield DeleteAclsRequest(filters=[wanted])


def build_quotas() -> Iterator[Request]:
    for kind, name in (("user", "bob"), ("client-id", "c"), ("user", None), ("ip", "10.0.0.1"), ("zone", "x")):
        entity = [EntityData(entity_type=kind, entity_name=name)]
        for key, value in (("producer_byte_rate", 1000.0), ("unknown", 1.0)):
            ops = [OpData(key=key, value=value, remove=False)]
            yield AlterClientQuotasRequest(entries=[EntryData(entity=entity, ops=ops)], validate_only=False)


def build_credentials() -> Iterator[Request]:
    upsertion = ScramCredentialUpsertion(name="bob", mechanism=1, iterations=4096, salt=b"s" * 16, salted_password=b"p")
    bad = ScramCredentialUpsertion(name="carl", mechanism=9, iterations=1, salt=b"s", salted_password=b"p")
    yield AlterUserScramCredentialsRequest(deletions=[], upsertions=[upsertion, bad])
    deletions = [ScramCredentialDeletion(name=name, mechanism=1) for name in ("bob", "missing", "")]
    yield AlterUserScramCredentialsRequest(deletions=deletions, upsertions=[])


def build_deletions() -> Iterator[Request]:
    names = ["good", "missing", "", "shop.good", LONG_NAME]
    topics = [DeleteTopicState(name=name) for name in names]
    yield DeleteTopicsRequest(topics=topics, topic_names=names, timeout_ms=TIMEOUT_MS)


SCRIPTS = {
    19: build_creations,
    37: build_growths,
    44: build_alterations,
    33: build_old_alterations,
    43: build_elections,
    46: build_reassignment_lists,
    30: build_acls,
    31: build_acl_deletions,
    49: build_quotas,
    51: build_credentials,
    20: build_deletions,
}
"""The requests by API key, in the order in which they are sent."""
OTHERS = frozenset({38, 39, 40, 57})
"""APIs whose answers hold what is drawn at random, or that need properties of their own."""


def test_each_api_that_is_forwarded_has_requests() -> None:
    assert set(FORWARDED) <= SCRIPTS.keys() | OTHERS


def dump(value: Any) -> Any:
    """Return a response as values that can be compared."""
    if isinstance(value, Struct):
        return {name: dump(getattr(value, name)) for name in type(value).FIELDS if name not in NOT_COMPARED}
    return [dump(item) for item in value] if isinstance(value, list) else value


def run_scripts(at_controller: bool, age: int, **properties: str) -> list[tuple[Any, ...]]:
    """Send all requests in a version that is *age* before the newest one; returns the answers."""
    cluster = Cluster(NODES, **properties)
    controller = cluster.controller()
    make_instance(cluster, "shop", super_users="User:alice")
    make_instance(cluster, "blog")
    cluster.create("blog.good")
    cluster.create("good")
    node = controller if at_controller else next(node for node in NODES if node != controller)
    client = TenantClient(cluster, "shop", ALICE)
    served = {versions.api_key: versions for versions in client.ask(node, ApiVersionsRequest(), 0).api_keys}
    answers: list[tuple[Any, ...]] = []
    for key, build in SCRIPTS.items():
        if key in TENANT_APIS:
            version = max(served[key].max_version - age, served[key].min_version)
            for request in build():
                answers.append((type(request).__name__, version, dump(client.ask(node, request, version))))
    image = cluster.brokers[controller].controller.committed
    answers.append(("topics", sorted(image.topics), sorted(map(str, image.configs.items()))))
    return answers


@pytest.mark.parametrize("age", [0, 2, 7])
def test_other_brokers_answer_as_the_controller(age: int) -> None:
    controller_answers, forwarded_answers = run_scripts(True, age), run_scripts(False, age)
    for answer, forwarded in zip(controller_answers, forwarded_answers, strict=True):
        assert forwarded == answer
    text = str(controller_answers[:-1])
    assert "blog" not in text
    assert "'good'" in text


def test_other_brokers_answer_as_the_controller_with_access_rules() -> None:
    authorizer = {
        "authorizer_class_name": "kafka.security.authorizer.AclAuthorizer",
        "super_users": "User:ANONYMOUS",
    }
    controller_answers, forwarded_answers = run_scripts(True, 0, **authorizer), run_scripts(False, 0, **authorizer)
    for answer, forwarded in zip(controller_answers, forwarded_answers, strict=True):
        assert forwarded == answer


def test_a_listener_that_emulates_an_old_release_forwards_for_instances() -> None:
    """Clients of that release look for the controller, and those of instances need not see it."""
    cluster = Cluster()
    make_instance(cluster, "shop")
    node = next(node for node in NODES if node != cluster.controller())
    broker = cluster.brokers[node]
    server: Any = broker.server
    server._dispatcher = emulate_release("2.8", broker._handlers(), broker._services)
    assert TenantClient(cluster, "shop").create(node, "t").error_code == 0
