"""OffsetDelete (key 47): delete the offsets of partitions that a group no longer reads (KIP-496)."""

from __future__ import annotations

from kafkacompat.wire.entities import GROUP, TOPIC
from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, string


class OffsetDeleteRequestPartition(Struct):
    """One partition."""

    partition_index: int = int32()


class OffsetDeleteRequestTopic(Struct):
    """The partitions of one topic."""

    name: str = string(entity=TOPIC)
    partitions: list[OffsetDeleteRequestPartition] = array(OffsetDeleteRequestPartition)


class OffsetDeleteRequest(Request, api_key=47, versions="0"):
    """Delete the given offsets."""

    group_id: str = string(entity=GROUP)
    topics: list[OffsetDeleteRequestTopic] = array(OffsetDeleteRequestTopic)


class OffsetDeleteResponsePartition(Struct):
    """The outcome for one partition; GROUP_SUBSCRIBED_TO_TOPIC if the group still subscribes to its topic."""

    partition_index: int = int32()
    error_code: int = int16()


class OffsetDeleteResponseTopic(Struct):
    """The outcomes for one topic."""

    name: str = string(entity=TOPIC)
    partitions: list[OffsetDeleteResponsePartition] = array(OffsetDeleteResponsePartition)


class OffsetDeleteResponse(Response, api_key=47, versions="0"):
    """The outcome for each partition."""

    error_code: int = int16()
    throttle_time_ms: int = int32()
    topics: list[OffsetDeleteResponseTopic] = array(OffsetDeleteResponseTopic)
