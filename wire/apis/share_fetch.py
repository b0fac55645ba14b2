"""ShareFetch (key 78): fetch records for a member of a share group and acknowledge earlier ones (KIP-932)."""

from __future__ import annotations

from kafkacompat.wire.compiler import Part
from kafkacompat.wire.entities import BROKER, GROUP, TEXT, TOPIC_ID
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
    """The acknowledgement of a range of records."""

    first_offset: int = int64()
    last_offset: int = int64()  # the last offset, inclusive
    # one for the range or one per record; 0: gap, 1: accept, 2: release, 3: reject, 4: renew (from version 2)
    acknowledge_types: list[int] = array(int8())


class FetchPartition(Struct):
    """The fetch limit and the acknowledgements for one partition."""

    partition_index: int = int32()
    partition_max_bytes: int = int32(versions="0")  # the size limit for the partition; 0: acknowledge only
    acknowledgement_batches: list[AcknowledgementBatch] = array(AcknowledgementBatch)


class FetchTopic(Struct):
    """The partitions of one topic."""

    topic_id: bytes = uuid(entity=TOPIC_ID)
    partitions: list[FetchPartition] = array(FetchPartition)


class ForgottenTopic(Struct):
    """Partitions to remove from the share session."""

    topic_id: bytes = uuid(entity=TOPIC_ID)
    partitions: list[int] = array(int32())


class ShareFetchRequest(Request, api_key=78, versions="0-2", flexible="0+"):
    """Acknowledge the given records, then fetch records that no other member has acquired."""

    group_id: str | None = string(nullable="0+", default=None, entity=GROUP)
    member_id: str | None = string(nullable="0+")
    # the session epoch, raised by one with each request; 0: start a session, -1: end it
    share_session_epoch: int = int32()
    max_wait_ms: int = int32()  # the longest wait for min_bytes
    min_bytes: int = int32()
    max_bytes: int = int32(default=MAX_INT32)  # the size limit of the whole response
    max_records: int = int32(versions="1+")  # the limit of records; a batch that exceeds it is returned whole
    batch_size: int = int32(versions="1+")  # the preferred number of records to acquire and acknowledge together
    share_acquire_mode: int = int8(versions="2+")  # 0: acquires whole batches, 1: never acquires more than max_records
    is_renew_ack: bool = boolean(versions="2+")  # some acknowledgements renew locks; the broker then fetches no records
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic)


class LeaderIdAndEpoch(Struct):
    """The current leader of the partition."""

    leader_id: int = int32(entity=BROKER)  # -1 if unknown
    leader_epoch: int = int32()


class AcquiredRecords(Struct):
    """A range of records that the member has acquired for a limited time."""

    first_offset: int = int64()
    last_offset: int = int64()  # the last offset, inclusive
    delivery_count: int = int16()  # the number of deliveries, including this one


class PartitionData(Struct):
    """The records of one partition and the outcome of its acknowledgements."""

    partition_index: int = int32()
    error_code: int = int16()  # the outcome of fetching
    error_message: str | None = string(nullable="0+", default=None, entity=TEXT)  # the outcome of fetching
    acknowledge_error_code: int = int16()  # the outcome of the acknowledgements
    acknowledge_error_message: str | None = string(
        nullable="0+", default=None, entity=TEXT
    )  # the outcome of the acknowledgements
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch)  # set with errors such as NOT_LEADER_OR_FOLLOWER
    records: Part | None = batches(nullable="0")  # whole batches; the member processes only the acquired records
    acquired_records: list[AcquiredRecords] = array(AcquiredRecords)


class ShareFetchableTopicResponse(Struct):
    """The records and outcomes of one topic."""

    topic_id: bytes = uuid(entity=TOPIC_ID)
    partitions: list[PartitionData] = array(PartitionData)


class NodeEndpoint(Struct):
    """The address of a leader named in the response."""

    node_id: int = int32(entity=BROKER)
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)


class ShareFetchResponse(Response, api_key=78, versions="0-2", flexible="0+"):
    """The fetched batches, grouped by topic."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None, entity=TEXT)
    acquisition_lock_timeout_ms: int = int32(versions="1+")  # the time for which the records stay locked for the member
    responses: list[ShareFetchableTopicResponse] = array(ShareFetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint)
