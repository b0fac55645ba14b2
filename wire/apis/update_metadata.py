"""UpdateMetadata (key 6): DOC"""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int8, int16, int32, int64, string, uuid


class UpdateMetadataPartitionState(Struct):
    """DOC"""

    topic_name: str = string(versions="0-4")
    partition_index: int = int32()
    controller_epoch: int = int32()
    leader: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = array(int32())
    zk_version: int = int32()
    replicas: list[int] = array(int32())
    offline_replicas: list[int] = array(int32(), versions="4+")


class UpdateMetadataTopicState(Struct):
    """DOC"""

    topic_name: str = string()
    topic_id: bytes = uuid(versions="7+")
    partition_states: list[UpdateMetadataPartitionState] = array(UpdateMetadataPartitionState)


class UpdateMetadataEndpoint(Struct):
    """DOC"""

    port: int = int32()
    host: str = string()
    listener: str = string(versions="3+")
    security_protocol: int = int16()


class UpdateMetadataBroker(Struct):
    """DOC"""

    id: int = int32()
    v0_host: str = string(versions="0")
    v0_port: int = int32(versions="0")
    endpoints: list[UpdateMetadataEndpoint] = array(UpdateMetadataEndpoint, versions="1+")
    rack: str | None = string(versions="2+", nullable="0+")


class UpdateMetadataRequest(Request, api_key=6, versions="0-8", flexible="6+"):
    """DOC"""

    controller_id: int = int32()
    is_k_raft_controller: bool = boolean(versions="8+")
    type: int = int8(versions="8+", tag=0)
    controller_epoch: int = int32()
    broker_epoch: int = int64(versions="5+", default=-1)
    ungrouped_partition_states: list[UpdateMetadataPartitionState] = array(UpdateMetadataPartitionState, versions="0-4")
    topic_states: list[UpdateMetadataTopicState] = array(UpdateMetadataTopicState, versions="5+")
    live_brokers: list[UpdateMetadataBroker] = array(UpdateMetadataBroker)


class UpdateMetadataResponse(Response, api_key=6, versions="0-8", flexible="6+"):
    """DOC"""

    error_code: int = int16()
