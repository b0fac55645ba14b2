"""ShareAcknowledge (key 79): acknowledge records that a member of a share group has acquired (KIP-932)."""

from __future__ import annotations

from kafkacompat.wire.entities import BROKER, GROUP, TEXT, TOPIC_ID
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
    """The acknowledgement of a range of records."""

    first_offset: int = int64()
    last_offset: int = int64()  # the last offset, inclusive
    # one for the range or one per record; 0: gap, 1: accept, 2: release, 3: reject, 4: renew (from version 2)
    acknowledge_types: list[int] = array(int8())


class AcknowledgePartition(Struct):
    """The acknowledgements for one partition."""

    partition_index: int = int32()
    acknowledgement_batches: list[AcknowledgementBatch] = array(AcknowledgementBatch)


class AcknowledgeTopic(Struct):
    """The acknowledgements for one topic."""

    topic_id: bytes = uuid(entity=TOPIC_ID)
    partitions: list[AcknowledgePartition] = array(AcknowledgePartition)


class ShareAcknowledgeRequest(Request, api_key=79, versions="0-2", flexible="0+"):
    """Acknowledge the given records."""

    group_id: str | None = string(nullable="0+", default=None, entity=GROUP)
    member_id: str | None = string(nullable="0+")
    share_session_epoch: int = int32()  # the session epoch, raised by one with each request; -1: end the session
    is_renew_ack: bool = boolean(versions="2+")  # some acknowledgements renew locks
    topics: list[AcknowledgeTopic] = array(AcknowledgeTopic)


class LeaderIdAndEpoch(Struct):
    """The current leader of the partition."""

    leader_id: int = int32(entity=BROKER)  # -1 if unknown
    leader_epoch: int = int32()


class PartitionData(Struct):
    """The outcome for one partition."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None, entity=TEXT)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch)  # set with errors such as NOT_LEADER_OR_FOLLOWER


class ShareAcknowledgeTopicResponse(Struct):
    """The outcomes for one topic."""

    topic_id: bytes = uuid(entity=TOPIC_ID)
    partitions: list[PartitionData] = array(PartitionData)


class NodeEndpoint(Struct):
    """The address of a leader named in the response."""

    node_id: int = int32(entity=BROKER)
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)


class ShareAcknowledgeResponse(Response, api_key=79, versions="0-2", flexible="0+"):
    """The outcome for each partition."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None, entity=TEXT)
    # the time for which renewed records stay locked for the member
    acquisition_lock_timeout_ms: int = int32(versions="2+")
    responses: list[ShareAcknowledgeTopicResponse] = array(ShareAcknowledgeTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint)
