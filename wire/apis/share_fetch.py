"""ShareFetch (key 78): records for a member of a share group, and what became of earlier ones (KIP-932)."""

from __future__ import annotations

from kafkacompat.wire.compiler import Part
from kafkacompat.wire.primitives import MAX_INT32
from kafkacompat.wire.schema import (
    Request,
    Response,
    Struct,
    array,
    batches,
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


class FetchPartition(Struct):
    """What to take from one partition, and what to settle in it."""

    partition_index: int = int32()
    partition_max_bytes: int = int32(versions="0")  # 0: settle only
    acknowledgement_batches: list[AcknowledgementBatch] = array(AcknowledgementBatch)


class FetchTopic(Struct):
    """The partitions of one topic."""

    topic_id: bytes = uuid()
    partitions: list[FetchPartition] = array(FetchPartition)


class ForgottenTopic(Struct):
    """Partitions to drop from the share session."""

    topic_id: bytes = uuid()
    partitions: list[int] = array(int32())


class ShareFetchRequest(Request, api_key=78, versions="0-2", flexible="0+"):
    """Settle these records, then send others that nobody else is working at."""

    group_id: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+")
    share_session_epoch: int = int32()  # 0: start a session, -1: end it, else one more each request
    max_wait_ms: int = int32()  # how long to wait for min_bytes
    min_bytes: int = int32()
    max_bytes: int = int32(default=MAX_INT32)  # of the whole answer
    max_records: int = int32(versions="1+")  # a batch that goes beyond is sent whole
    batch_size: int = int32(versions="1+")  # how many records are best acquired and settled together
    share_acquire_mode: int = int8(versions="2+")  # 0: whole batches, 1: never more than max_records
    is_renew_ack: bool = boolean(versions="2+")  # some acknowledgements renew the lock, so nothing is fetched
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic)


class LeaderIdAndEpoch(Struct):
    """The current leader of the partition."""

    leader_id: int = int32()  # -1 if unknown
    leader_epoch: int = int32()


class AcquiredRecords(Struct):
    """A range of records that the member has for a while."""

    first_offset: int = int64()
    last_offset: int = int64()  # inclusive
    delivery_count: int = int16()  # how often they were handed out, this time counted


class PartitionData(Struct):
    """What was found in one partition."""

    partition_index: int = int32()
    error_code: int = int16()  # of fetching
    error_message: str | None = string(nullable="0+", default=None)  # of fetching
    acknowledge_error_code: int = int16()  # of settling
    acknowledge_error_message: str | None = string(nullable="0+", default=None)  # of settling
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch)  # with NOT_LEADER_OR_FOLLOWER and the like
    records: Part | None = batches(nullable="0")  # whole batches; only those acquired are for the member
    acquired_records: list[AcquiredRecords] = array(AcquiredRecords)


class ShareFetchableTopicResponse(Struct):
    """What was found in one topic."""

    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


class NodeEndpoint(Struct):
    """The address of a leader named in the response."""

    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)


class ShareFetchResponse(Response, api_key=78, versions="0-2", flexible="0+"):
    """The batches found, topic by topic."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = int32(versions="1+")  # how long the member has the records to itself
    responses: list[ShareFetchableTopicResponse] = array(ShareFetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint)
