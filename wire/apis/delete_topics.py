"""DeleteTopics (key 20): delete topics by name or id."""

from __future__ import annotations

from kafkacompat.wire.entities import TEXT, TOPIC, TOPIC_ID
from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, string, uuid


class DeleteTopicState(Struct):
    """A topic by name or, without a name, by id."""

    name: str | None = string(nullable="0+", default=None, entity=TOPIC)
    topic_id: bytes = uuid(entity=TOPIC_ID)


class DeleteTopicsRequest(Request, api_key=20, versions="0-6", flexible="4+"):
    """Delete the given topics: by name (up to version 5), or by name or id (from 6)."""

    topics: list[DeleteTopicState] = array(DeleteTopicState, versions="6+")
    topic_names: list[str] = array(string(entity=TOPIC), versions="0-5")
    timeout_ms: int = int32()


class DeletableTopicResult(Struct):
    """The outcome for one topic."""

    name: str | None = string(nullable="6+", entity=TOPIC)
    topic_id: bytes = uuid(versions="6+", entity=TOPIC_ID)
    error_code: int = int16()
    error_message: str | None = string(versions="5+", nullable="0+", default=None, entity=TEXT)


class DeleteTopicsResponse(Response, api_key=20, versions="0-6", flexible="4+"):
    """The outcome for each topic."""

    throttle_time_ms: int = int32(versions="1+")
    responses: list[DeletableTopicResult] = array(DeletableTopicResult)
