"""UpdateMetadata (key 6): a ZooKeeper controller tells brokers what clients may ask them; gone in Kafka 4.0."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int8, int16, int32, int64, string, uuid


class UpdateMetadataPartitionState(Struct):
    """Who leads one partition, and who replicates it."""

    topic_name: str = string(versions="0-4")
    partition_index: int = int32()
    controller_epoch: int = int32()  # of the controller that changed the partition last
    leader: int = int32()  # -1: none, -2: the topic is being deleted
    leader_epoch: int = int32()
    isr: list[int] = array(int32())  # brokers in sync
    zk_version: int = int32()  # counts the changes of this state
    replicas: list[int] = array(int32())  # brokers in the order of preference
    # brokers that are down or whose log directory has failed
    offline_replicas: list[int] = array(int32(), versions="4+")


class UpdateMetadataTopicState(Struct):
    """The partitions of one topic."""

    topic_name: str = string()
    topic_id: bytes = uuid(versions="7+")
    partition_states: list[UpdateMetadataPartitionState] = array(UpdateMetadataPartitionState)


class UpdateMetadataEndpoint(Struct):
    """One listener of a broker."""

    port: int = int32()
    host: str = string()
    listener: str = string(versions="3+")  # its name; up to version 2 the protocol's
    security_protocol: int = int16()  # 0: PLAINTEXT, 1: SSL, 2: SASL_PLAINTEXT, 3: SASL_SSL


class UpdateMetadataBroker(Struct):
    """One live broker."""

    id: int = int32()
    v0_host: str = string(versions="0")  # of its only listener, PLAINTEXT
    v0_port: int = int32(versions="0")  # of its only listener, PLAINTEXT
    endpoints: list[UpdateMetadataEndpoint] = array(UpdateMetadataEndpoint, versions="1+")
    rack: str | None = string(versions="2+", nullable="0+")


class UpdateMetadataRequest(Request, api_key=6, versions="0-8", flexible="6+"):
    """Know these partitions and these brokers from now on."""

    controller_id: int = int32()
    # controller_id is a KRaft controller, during a migration (KIP-866)
    is_k_raft_controller: bool = boolean(versions="8+")
    type: int = int8(versions="8+", tag=0)  # 0: not told, 1: the topics that changed, 2: all of them (KIP-866)
    controller_epoch: int = int32()  # counts the controllers; a request with an older one is refused
    broker_epoch: int = int64(versions="5+", default=-1)
    # each names its topic
    ungrouped_partition_states: list[UpdateMetadataPartitionState] = array(UpdateMetadataPartitionState, versions="0-4")
    topic_states: list[UpdateMetadataTopicState] = array(UpdateMetadataTopicState, versions="5+")
    live_brokers: list[UpdateMetadataBroker] = array(UpdateMetadataBroker)  # all of them, always


class UpdateMetadataResponse(Response, api_key=6, versions="0-8", flexible="6+"):
    """Whether the broker took it."""

    error_code: int = int16()
