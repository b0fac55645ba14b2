"""UpdateMetadata (key 6): a ZooKeeper controller sends cluster metadata to brokers; removed in Kafka 4.0."""

from __future__ import annotations

from kafkacompat.wire.entities import BROKER, TOPIC, TOPIC_ID
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int8, int16, int32, int64, string, uuid


class UpdateMetadataPartitionState(Struct):
    """The leader and the replicas of one partition."""

    topic_name: str = string(versions="0-4", entity=TOPIC)
    partition_index: int = int32()
    controller_epoch: int = int32()  # the epoch of the controller that changed the partition last
    leader: int = int32(entity=BROKER)  # -1: none, -2: the topic is being deleted
    leader_epoch: int = int32()
    isr: list[int] = array(int32(entity=BROKER))  # the brokers in the in-sync replica set
    zk_version: int = int32()  # raised with each change of this state
    replicas: list[int] = array(int32(entity=BROKER))  # brokers in the order of preference
    # brokers that are down or whose log directory has failed
    offline_replicas: list[int] = array(int32(entity=BROKER), versions="4+")


class UpdateMetadataTopicState(Struct):
    """The partitions of one topic."""

    topic_name: str = string(entity=TOPIC)
    topic_id: bytes = uuid(versions="7+", entity=TOPIC_ID)
    partition_states: list[UpdateMetadataPartitionState] = array(UpdateMetadataPartitionState)


class UpdateMetadataEndpoint(Struct):
    """One listener of a broker."""

    port: int = int32()
    host: str = string()
    listener: str = string(versions="3+")  # the name of the listener; up to version 2 that of the protocol
    security_protocol: int = int16()  # 0: PLAINTEXT, 1: SSL, 2: SASL_PLAINTEXT, 3: SASL_SSL


class UpdateMetadataBroker(Struct):
    """One live broker."""

    id: int = int32(entity=BROKER)
    v0_host: str = string(versions="0")  # the address of its only listener, PLAINTEXT
    v0_port: int = int32(versions="0")  # the address of its only listener, PLAINTEXT
    endpoints: list[UpdateMetadataEndpoint] = array(UpdateMetadataEndpoint, versions="1+")
    rack: str | None = string(versions="2+", nullable="0+")


class UpdateMetadataRequest(Request, api_key=6, versions="0-8", flexible="6+", sized_by_cluster=True):
    """Replace the metadata of the given partitions and of the live brokers."""

    controller_id: int = int32(entity=BROKER)
    # controller_id is that of a KRaft controller during a migration (KIP-866)
    is_k_raft_controller: bool = boolean(versions="8+")
    type: int = int8(versions="8+", tag=0)  # 0: unknown, 1: the changed topics, 2: all topics (KIP-866)
    controller_epoch: int = int32()  # raised with each new controller; the broker rejects a request with an older epoch
    broker_epoch: int = int64(versions="5+", default=-1)
    # each entry names its topic
    ungrouped_partition_states: list[UpdateMetadataPartitionState] = array(UpdateMetadataPartitionState, versions="0-4")
    topic_states: list[UpdateMetadataTopicState] = array(UpdateMetadataTopicState, versions="5+")
    live_brokers: list[UpdateMetadataBroker] = array(UpdateMetadataBroker)  # all live brokers, in each request


class UpdateMetadataResponse(Response, api_key=6, versions="0-8", flexible="6+"):
    """The outcome of the update."""

    error_code: int = int16()
