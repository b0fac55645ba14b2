"""Scripts about topics and the cluster."""

from __future__ import annotations

from compat_tests.same_answers.transcript import Transcript
from kafkacompat.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkacompat.wire.apis.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kafkacompat.wire.apis.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafkacompat.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from kafkacompat.wire.apis.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kafkacompat.wire.apis.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kafkacompat.wire.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafkacompat.wire.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

UNKNOWN_ID = bytes(range(16))


def api_versions(script: Transcript, name: str) -> None:
    named = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
    script.ask_every_version("all", named, ApiVersionsResponse)
    unnamed = ApiVersionsRequest(client_software_name="", client_software_version="")
    script.ask("no software name", unnamed, ApiVersionsResponse, 3)


def without_sasl(script: Transcript, name: str) -> None:
    script.ask_every_version("handshake", SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse)
    script.ask_every_version("authenticate", SaslAuthenticateRequest(auth_bytes=b"\0a\0b"), SaslAuthenticateResponse)


def metadata(script: Transcript, name: str) -> None:
    topic_id = script.create_topic(name, 3)

    def ask(label: str, *topics: MetadataRequestTopic, versions: range = range(14), create: bool = False) -> None:
        request = MetadataRequest(
            topics=list(topics), allow_auto_topic_creation=create, include_topic_authorized_operations=True
        )
        for version in versions:
            script.ask(label, request, MetadataResponse, version)

    ask("a topic", MetadataRequestTopic(name=name))
    ask("unknown", MetadataRequestTopic(name=name + "-absent"), versions=range(4, 14))
    ask("bad name", MetadataRequestTopic(name="no/slashes"))
    ask("dots", MetadataRequestTopic(name=".."))
    ask("none", versions=range(1, 14))
    ask("by id", MetadataRequestTopic(topic_id=topic_id, name=None), versions=range(12, 14))
    ask("unknown id", MetadataRequestTopic(topic_id=UNKNOWN_ID, name=None), versions=range(12, 14))
    ask("twice", MetadataRequestTopic(name=name), MetadataRequestTopic(name=name), versions=range(12, 13))


def create_topics(script: Transcript, name: str) -> None:
    def ask(label: str, *topics: CreatableTopic, version: int = 7, only_check: bool = False) -> None:
        request = CreateTopicsRequest(topics=list(topics), timeout_ms=10_000, validate_only=only_check)
        script.ask(label, request, CreateTopicsResponse, version)

    def topic(suffix: str, partitions: int = 1, replication: int = 1, **configs: str | None) -> CreatableTopic:
        given = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
        return CreatableTopic(
            name=name + suffix, num_partitions=partitions, replication_factor=replication, configs=given
        )

    for version in range(2, 8):
        ask("new", topic(f"-{version}", 2, retention_ms="1000"), version=version)
        ask("exists", topic(f"-{version}"), version=version)
        ask("checked only", topic("-never"), version=version, only_check=True)
    ask("default counts", topic("-defaults", -1, -1))
    ask("default counts in 3", topic("-defaults-3", -1, -1), version=3)
    for label, partitions, replication in (("0", 0, 1), ("-2", -2, 1), ("0 replicas", 1, 0), ("3 replicas", 1, 3)):
        ask(f"counts {label}", topic("-counts", partitions, replication))
    for bad in ("", ".", "..", "a b", "ä", "x" * 250):
        ask(f"name {bad[:3]!r}", CreatableTopic(name=bad, num_partitions=1, replication_factor=1))
    ask("unknown config", topic("-config", frobnicate="1"))
    ask("bad config", topic("-config", retention_ms="soon"))
    ask("config out of bounds", topic("-config", segment_bytes="10"))
    ask("null config", topic("-config", retention_ms=None))
    ask("twice", topic("-twice"), topic("-twice"))
    ask("good beside bad", topic("-good"), topic("-bad", 0))
    ask("collides", topic("-a.b"))
    ask("collides with", topic("-a_b"))

    def assigned(label: str, *brokers: list[int], partitions: int = -1) -> None:
        chosen = [CreatableReplicaAssignment(partition_index=i, broker_ids=ids) for i, ids in enumerate(brokers)]
        ask(
            label,
            CreatableTopic(
                name=name + "-assigned", num_partitions=partitions, replication_factor=-1, assignments=chosen
            ),
        )

    assigned("assigned to unknown", [9])
    assigned("assigned twice", [1, 1])
    assigned("assigned to nobody", [])
    assigned("assigned and counted", [1], partitions=1)
    assigned("assigned", [1], [1])


def delete_topics(script: Transcript, name: str) -> None:
    for version in range(1, 6):
        script.create_topic(f"{name}-{version}")
        for label, doomed in (("by name", f"{name}-{version}"), ("unknown", name + "-absent")):
            request = DeleteTopicsRequest(topic_names=[doomed], timeout_ms=10_000)
            script.ask(label, request, DeleteTopicsResponse, version)
    topic_id = script.create_topic(name + "-6")
    for label, states in {
        "by id": [DeleteTopicState(topic_id=topic_id)],
        "by id again": [DeleteTopicState(topic_id=topic_id)],
        "unknown name": [DeleteTopicState(name=name + "-absent")],
        "unknown id": [DeleteTopicState(topic_id=UNKNOWN_ID)],
        "name and id": [DeleteTopicState(name="a", topic_id=UNKNOWN_ID)],
        "neither": [DeleteTopicState()],
    }.items():
        script.ask(label, DeleteTopicsRequest(topics=states, timeout_ms=10_000), DeleteTopicsResponse, 6)


def create_partitions(script: Transcript, name: str) -> None:
    script.create_topic(name)

    def ask(label: str, count: int, version: int, topic: str = name, brokers: list[list[int]] | None = None) -> None:
        chosen = None if brokers is None else [CreatePartitionsAssignment(broker_ids=ids) for ids in brokers]
        more = CreatePartitionsTopic(name=topic, count=count, assignments=chosen)
        request = CreatePartitionsRequest(topics=[more], timeout_ms=10_000)
        script.ask(label, request, CreatePartitionsResponse, version)

    for version in range(4):
        ask(f"to {version + 2}", version + 2, version)
        ask("as many", version + 2, version)
        ask("fewer", 1, version)
    ask("unknown topic", 3, 3, topic=name + "-absent")
    ask("assigned", 6, 3, brokers=[[1]])
    ask("assigned too few", 8, 3, brokers=[[1]])
    ask("assigned to unknown", 7, 3, brokers=[[9]])
    ask("negative", -1, 3)


def cluster(script: Transcript, name: str) -> None:
    script.ask_every_version("plain", DescribeClusterRequest(), DescribeClusterResponse)
    operations = DescribeClusterRequest(include_cluster_authorized_operations=True)
    script.ask_every_version("with operations", operations, DescribeClusterResponse)
    script.ask("of controllers", DescribeClusterRequest(endpoint_type=2), DescribeClusterResponse, 1)
    script.ask("of nobody", DescribeClusterRequest(endpoint_type=9), DescribeClusterResponse, 1)
    script.ask("with fenced", DescribeClusterRequest(include_fenced_brokers=True), DescribeClusterResponse, 2)
    script.ask(
        "fenced controllers",
        DescribeClusterRequest(endpoint_type=2, include_fenced_brokers=True),
        DescribeClusterResponse,
        2,
    )


def topic_partitions(script: Transcript, name: str) -> None:
    script.create_topic(name + "-a", 3)
    script.create_topic(name + "-b", 2)

    def ask(label: str, *names: str, limit: int = 2000, cursor: Cursor | None = None) -> None:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=topic) for topic in names], response_partition_limit=limit, cursor=cursor
        )
        script.ask(label, request, DescribeTopicPartitionsResponse, 0)

    ask("two, unsorted", name + "-b", name + "-a")
    ask("limited", name + "-b", name + "-a", limit=2)
    ask("from a cursor", name + "-a", name + "-b", limit=2, cursor=Cursor(topic_name=name + "-a", partition_index=2))
    ask("unknown", name + "-absent")
    ask("bad name", "no/slashes")
    ask("limit 0", name + "-a", limit=0)


SCRIPTS = (
    api_versions,
    without_sasl,
    metadata,
    create_topics,
    delete_topics,
    create_partitions,
    cluster,
    topic_partitions,
)
