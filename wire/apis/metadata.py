"""Metadata (key 3): the brokers, the topics and who leads which partition."""

from __future__ import annotations

from kafkacompat.wire.primitives import MIN_INT32
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int16, int32, string, uuid


class MetadataRequestTopic(Struct):
    """A topic by name or, without a name, by id."""

    topic_id: bytes = uuid(versions="10+")
    name: str | None = string(nullable="10+")


class MetadataRequest(Request, api_key=3, versions="0-13", flexible="9+"):
    """Describe these topics; null asks for all of them, as does an empty list in version 0."""

    topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, nullable="1+")
    # create those that do not exist, if the broker does such things
    allow_auto_topic_creation: bool = boolean(versions="4+", default=True)
    # what the client may do with the cluster (KIP-430)
    include_cluster_authorized_operations: bool = boolean(versions="8-10")
    # what the client may do with each topic (KIP-430)
    include_topic_authorized_operations: bool = boolean(versions="8+")


class MetadataResponseBroker(Struct):
    """A live broker, at the address of the listener the client came through."""

    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(versions="1+", nullable="0+", default=None)


class MetadataResponsePartition(Struct):
    """Leader and replicas of one partition."""

    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()  # -1: none
    leader_epoch: int = int32(versions="7+", default=-1)  # -1 when not known
    replica_nodes: list[int] = array(int32())  # in the order of preference
    isr_nodes: list[int] = array(int32())  # those in sync
    offline_replicas: list[int] = array(int32(), versions="5+")  # those that are down or have lost their disk


class MetadataResponseTopic(Struct):
    """One topic, or why it cannot be described."""

    error_code: int = int16()
    name: str | None = string(nullable="12+")
    topic_id: bytes = uuid(versions="10+")
    is_internal: bool = boolean(versions="1+")  # the broker's own, such as __consumer_offsets
    partitions: list[MetadataResponsePartition] = array(MetadataResponsePartition)
    # bits of AclOperation codes; the default means: not asked for
    topic_authorized_operations: int = int32(versions="8+", default=MIN_INT32)


class MetadataResponse(Response, api_key=3, versions="0-13", flexible="9+"):
    """The cluster as the broker sees it."""

    throttle_time_ms: int = int32(versions="3+")
    brokers: list[MetadataResponseBroker] = array(MetadataResponseBroker)
    cluster_id: str | None = string(versions="2+", nullable="0+", default=None)  # null when not known
    controller_id: int = int32(versions="1+", default=-1)  # -1: none
    topics: list[MetadataResponseTopic] = array(MetadataResponseTopic)
    # bits of AclOperation codes; the default means: not asked for
    cluster_authorized_operations: int = int32(versions="8-10", default=MIN_INT32)
    error_code: int = int16(versions="13+")
