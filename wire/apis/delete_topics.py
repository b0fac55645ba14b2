"""DeleteTopics (key 20): delete topics by name or id."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, string, uuid


class DeleteTopicState(Struct):
    """A topic by name or, without a name, by id."""

    name: str | None = string(nullable="0+", default=None)
    topic_id: bytes = uuid()


class DeleteTopicsRequest(Request, api_key=20, versions="0-6", flexible="4+"):
    """Delete the given topics: by name (up to version 5), or by name or id (from 6)."""

    topics: list[DeleteTopicState] = array(DeleteTopicState, versions="6+")
    topic_names: list[str] = array(string(), versions="0-5")
    timeout_ms: int = int32()


class DeletableTopicResult(Struct):
    """The outcome for one topic."""

    name: str | None = string(nullable="6+")
    topic_id: bytes = uuid(versions="6+")
    error_code: int = int16()
    error_message: str | None = string(versions="5+", nullable="0+", default=None)


class DeleteTopicsResponse(Response, api_key=20, versions="0-6", flexible="4+"):
    """The outcome for each topic."""

    throttle_time_ms: int = int32(versions="1+")
    responses: list[DeletableTopicResult] = array(DeletableTopicResult)
