"""Produce (key 0): append record batches to partition leaders."""

from __future__ import annotations

from kafkacompat.wire.entities import BROKER, TEXT, TOPIC, TOPIC_ID, TRANSACTIONAL_ID
from kafkacompat.wire.primitives import Buffer
from kafkacompat.wire.schema import Request, Response, Struct, array, batches, int16, int32, int64, string, struct, uuid


class PartitionProduceData(Struct):
    """The batch for one partition."""

    index: int = int32()  # the index of the partition
    records: Buffer | None = batches(nullable="0+")  # one batch; up to version 2 a message set


class TopicProduceData(Struct):
    """The batches for one topic, identified by name (up to version 12) or by id (from 13)."""

    name: str = string(versions="0-12", entity=TOPIC)
    topic_id: bytes = uuid(versions="13+", entity=TOPIC_ID)
    partition_data: list[PartitionProduceData] = array(PartitionProduceData)


class ProduceRequest(Request, api_key=0, versions="0-13", flexible="9+"):
    """Append the given batches."""

    transactional_id: str | None = string(
        versions="3+", nullable="0+", default=None, entity=TRANSACTIONAL_ID
    )  # null without a transaction
    acks: int = int16()  # 0: no response, 1: after the leader, -1: after all in-sync replicas append the batches
    timeout_ms: int = int32()  # the time that the leader waits for other replicas, with acks -1
    topic_data: list[TopicProduceData] = array(TopicProduceData)


class BatchIndexAndErrorMessage(Struct):
    """One record for which the broker rejects the whole batch."""

    batch_index: int = int32()  # the index of the record in its batch
    # the error of the record; null if error_message of the partition applies
    batch_index_error_message: str | None = string(nullable="0+", default=None, entity=TEXT)


class LeaderIdAndEpoch(Struct):
    """The current leader of the partition; -1 if unknown (KIP-951)."""

    leader_id: int = int32(default=-1, entity=BROKER)
    leader_epoch: int = int32(default=-1)


class PartitionProduceResponse(Struct):
    """The outcome for one partition."""

    index: int = int32()  # the index of the partition
    error_code: int = int16()
    base_offset: int = int64()  # the offset of the first record; -1 if the request fails
    # the time of appending; -1 if the records keep the producer's timestamps
    log_append_time_ms: int = int64(versions="2+", default=-1)
    log_start_offset: int = int64(versions="5+", default=-1)  # -1 if unknown
    # the records that caused the error (KIP-467)
    record_errors: list[BatchIndexAndErrorMessage] = array(BatchIndexAndErrorMessage, versions="8+")
    error_message: str | None = string(versions="8+", nullable="0+", default=None, entity=TEXT)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, versions="10+", tag=0)


class TopicProduceResponse(Struct):
    """The outcomes for one topic."""

    name: str = string(versions="0-12", entity=TOPIC)
    topic_id: bytes = uuid(versions="13+", entity=TOPIC_ID)
    partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse)


class NodeEndpoint(Struct):
    """The address of a leader named in the response."""

    node_id: int = int32(entity=BROKER)
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)


class ProduceResponse(Response, api_key=0, versions="0-13", flexible="9+"):
    """The outcome for each batch."""

    responses: list[TopicProduceResponse] = array(TopicProduceResponse)
    throttle_time_ms: int = int32(versions="1+")
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, versions="10+", tag=0)
