"""DeleteShareGroupOffsets (key 92): let an empty share group forget topics (KIP-932)."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, string, uuid


class DeleteShareGroupOffsetsRequestTopic(Struct):
    """A topic to forget."""

    topic_name: str = string()


class DeleteShareGroupOffsetsRequest(Request, api_key=92, versions="0", flexible="0+"):
    """Forget these topics."""

    group_id: str = string()
    topics: list[DeleteShareGroupOffsetsRequestTopic] = array(DeleteShareGroupOffsetsRequestTopic)


class DeleteShareGroupOffsetsResponseTopic(Struct):
    """The outcome for one topic."""

    topic_name: str = string()
    topic_id: bytes = uuid()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


class DeleteShareGroupOffsetsResponse(Response, api_key=92, versions="0", flexible="0+"):
    """What became of each topic."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = array(DeleteShareGroupOffsetsResponseTopic)
