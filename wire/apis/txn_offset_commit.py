"""TxnOffsetCommit (key 28): commit offsets of a group as part of a transaction.

From version 5 it needs no preceding AddOffsetsToTxn (KIP-890).
"""

from __future__ import annotations

from kafkacompat.wire.entities import GROUP, TOPIC, TRANSACTIONAL_ID
from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, int64, string


class TxnOffsetCommitRequestPartition(Struct):
    """The offset of one partition: that of the next record to read."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(versions="2+", default=-1)  # the leader epoch of the last record read
    committed_metadata: str | None = string(nullable="0+")  # the client's metadata, any text


class TxnOffsetCommitRequestTopic(Struct):
    """The offsets for one topic."""

    name: str = string(entity=TOPIC)
    partitions: list[TxnOffsetCommitRequestPartition] = array(TxnOffsetCommitRequestPartition)


class TxnOffsetCommitRequest(Request, api_key=28, versions="0-5", flexible="3+"):
    """Commit the given offsets with the transaction."""

    transactional_id: str = string(entity=TRANSACTIONAL_ID)
    group_id: str = string(entity=GROUP)
    producer_id: int = int64()
    producer_epoch: int = int16()
    generation_id: int = int32(versions="3+", default=-1)
    member_id: str = string(versions="3+")
    group_instance_id: str | None = string(versions="3+", nullable="0+", default=None)
    topics: list[TxnOffsetCommitRequestTopic] = array(TxnOffsetCommitRequestTopic)


class TxnOffsetCommitResponsePartition(Struct):
    """The outcome for one partition."""

    partition_index: int = int32()
    error_code: int = int16()


class TxnOffsetCommitResponseTopic(Struct):
    """The outcomes for one topic."""

    name: str = string(entity=TOPIC)
    partitions: list[TxnOffsetCommitResponsePartition] = array(TxnOffsetCommitResponsePartition)


class TxnOffsetCommitResponse(Response, api_key=28, versions="0-5", flexible="3+"):
    """The outcome for each partition. Stored offsets stay pending until the transaction ends."""

    throttle_time_ms: int = int32()
    topics: list[TxnOffsetCommitResponseTopic] = array(TxnOffsetCommitResponseTopic)
