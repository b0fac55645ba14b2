"""Metadata (key 3): the brokers, the topics and the leaders of partitions."""

from __future__ import annotations

from kafkacompat.wire.entities import BROKER, CLUSTER, TOPIC, TOPIC_ID
from kafkacompat.wire.primitives import MIN_INT32
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int16, int32, string, uuid


class MetadataRequestTopic(Struct):
    """A topic by name or, without a name, by id."""

    topic_id: bytes = uuid(versions="10+", entity=TOPIC_ID)
    name: str | None = string(nullable="10+", entity=TOPIC)


class MetadataRequest(Request, api_key=3, versions="0-13", flexible="9+"):
    """Describe the given topics; null requests all topics, as an empty list does in version 0."""

    topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, nullable="1+")
    # creates missing topics, if the broker's configuration allows it
    allow_auto_topic_creation: bool = boolean(versions="4+", default=True)
    # adds the operations that the client may perform on the cluster (KIP-430)
    include_cluster_authorized_operations: bool = boolean(versions="8-10")
    # adds the operations that the client may perform on each topic (KIP-430)
    include_topic_authorized_operations: bool = boolean(versions="8+")


class MetadataResponseBroker(Struct):
    """A live broker with its address on the listener that the client uses."""

    node_id: int = int32(entity=BROKER)
    host: str = string()
    port: int = int32()
    rack: str | None = string(versions="1+", nullable="0+", default=None)


class MetadataResponsePartition(Struct):
    """The leader and the replicas of one partition."""

    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32(entity=BROKER)  # -1 if there is none
    leader_epoch: int = int32(versions="7+", default=-1)  # -1 if unknown
    replica_nodes: list[int] = array(int32(entity=BROKER))  # brokers in the order of preference
    isr_nodes: list[int] = array(int32(entity=BROKER))  # the brokers in the in-sync replica set
    # brokers that are down or whose log directory has failed
    offline_replicas: list[int] = array(int32(entity=BROKER), versions="5+")


class MetadataResponseTopic(Struct):
    """One topic, or the reason why the broker cannot describe it."""

    error_code: int = int16()
    name: str | None = string(nullable="12+", entity=TOPIC)
    topic_id: bytes = uuid(versions="10+", entity=TOPIC_ID)
    is_internal: bool = boolean(versions="1+")  # internal to the brokers, such as __consumer_offsets
    partitions: list[MetadataResponsePartition] = array(MetadataResponsePartition)
    # a bit for each AclOperation code; the default if the client did not request it
    topic_authorized_operations: int = int32(versions="8+", default=MIN_INT32)


class MetadataResponse(Response, api_key=3, versions="0-13", flexible="9+"):
    """The cluster metadata as the broker knows it."""

    throttle_time_ms: int = int32(versions="3+")
    brokers: list[MetadataResponseBroker] = array(MetadataResponseBroker)
    cluster_id: str | None = string(versions="2+", nullable="0+", default=None, entity=CLUSTER)  # null if unknown
    controller_id: int = int32(versions="1+", default=-1, entity=BROKER)  # -1 if there is none
    topics: list[MetadataResponseTopic] = array(MetadataResponseTopic)
    # a bit for each AclOperation code; the default if the client did not request it
    cluster_authorized_operations: int = int32(versions="8-10", default=MIN_INT32)
    error_code: int = int16(versions="13+")
