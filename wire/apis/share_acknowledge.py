"""ShareAcknowledge (key 79): what became of records that a member of a share group was handed (KIP-932)."""

from __future__ import annotations

from kafkacompat.wire.schema import (
    Request,
    Response,
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    string,
    struct,
    uuid,
)


class AcknowledgementBatch(Struct):
    """What became of a range of records."""

    first_offset: int = int64()
    last_offset: int = int64()  # inclusive
    # one for the whole range or one a record; 0: gap, 1: accept, 2: release, 3: reject, 4: renew (from version 2)
    acknowledge_types: list[int] = array(int8())


class AcknowledgePartition(Struct):
    """What to settle in one partition."""

    partition_index: int = int32()
    acknowledgement_batches: list[AcknowledgementBatch] = array(AcknowledgementBatch)


class AcknowledgeTopic(Struct):
    """What to settle in one topic."""

    topic_id: bytes = uuid()
    partitions: list[AcknowledgePartition] = array(AcknowledgePartition)


class ShareAcknowledgeRequest(Request, api_key=79, versions="0-2", flexible="0+"):
    """Settle these records."""

    group_id: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+")
    share_session_epoch: int = int32()  # -1: end the session, else one more each request
    is_renew_ack: bool = boolean(versions="2+")  # some acknowledgements renew the lock
    topics: list[AcknowledgeTopic] = array(AcknowledgeTopic)


class LeaderIdAndEpoch(Struct):
    """The current leader of the partition."""

    leader_id: int = int32()  # -1 if unknown
    leader_epoch: int = int32()


class PartitionData(Struct):
    """The outcome for one partition."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch)  # with NOT_LEADER_OR_FOLLOWER and the like


class ShareAcknowledgeTopicResponse(Struct):
    """The outcomes for one topic."""

    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


class NodeEndpoint(Struct):
    """The address of a leader named in the response."""

    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)


class ShareAcknowledgeResponse(Response, api_key=79, versions="0-2", flexible="0+"):
    """The outcome for each partition."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = int32(versions="2+")  # how long the member has renewed records to itself
    responses: list[ShareAcknowledgeTopicResponse] = array(ShareAcknowledgeTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint)
