"""DeleteShareGroupOffsets (key 92): delete the offsets of an empty share group for topics (KIP-932)."""

from __future__ import annotations

from kafkacompat.wire.entities import GROUP, TEXT, TOPIC, TOPIC_ID
from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, string, uuid


class DeleteShareGroupOffsetsRequestTopic(Struct):
    """A topic to delete the offsets of."""

    topic_name: str = string(entity=TOPIC)


class DeleteShareGroupOffsetsRequest(Request, api_key=92, versions="0", flexible="0+"):
    """Delete the group's offsets for the given topics."""

    group_id: str = string(entity=GROUP)
    topics: list[DeleteShareGroupOffsetsRequestTopic] = array(DeleteShareGroupOffsetsRequestTopic)


class DeleteShareGroupOffsetsResponseTopic(Struct):
    """The outcome for one topic."""

    topic_name: str = string(entity=TOPIC)
    topic_id: bytes = uuid(entity=TOPIC_ID)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None, entity=TEXT)


class DeleteShareGroupOffsetsResponse(Response, api_key=92, versions="0", flexible="0+"):
    """The outcome for each topic."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None, entity=TEXT)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = array(DeleteShareGroupOffsetsResponseTopic)
