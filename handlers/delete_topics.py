"""DeleteTopics (key 20), v0-6: delete topics by name, from v6 also by id.

v3     a broker that does not delete topics returns TOPIC_DELETION_DISABLED
v4     flexible
v5     error messages; a client that has used up its quota of changes gets THROTTLING_QUOTA_EXCEEDED (KIP-599)
v6     topics by id

The answer comes once a topic of the same name can be created again. In a cluster it does not wait for
replicas whose brokers are away. On a single node the request's timeout has no effect. Names are those that the controller knows, which may be ahead of the brokers.
"""

from __future__ import annotations

from collections import Counter

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.handlers.waiting import wait_at_most
from kafkacompat.metadata.image import MetadataImage
from kafkacompat.metadata.topic_names import format_topic
from kafkacompat.wire.apis.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import ZERO_UUID

DISABLED_VERSION = 3


def handle_delete_topics(
    request: DeleteTopicsRequest, context: RequestContext, services: Services
) -> Pending[DeleteTopicsResponse] | DeleteTopicsResponse:
    """Delete every existing topic that the request names once."""
    wanted = [*(DeleteTopicState(name=name) for name in request.topic_names), *request.topics]
    if not services.config.bool("delete.topic.enable"):
        disabled = context.api_version >= DISABLED_VERSION
        code = ErrorCode.TOPIC_DELETION_DISABLED if disabled else ErrorCode.INVALID_REQUEST
        problem = KafkaError(code, "topics cannot be deleted, as delete.topic.enable is false")
        return DeleteTopicsResponse(responses=[_build_result(topic.name, topic.topic_id, problem) for topic in wanted])
    return answer_in_order(_delete_topics(wanted, request.timeout_ms, context, services))


async def _delete_topics(
    wanted: list[DeleteTopicState], timeout_ms: int, context: RequestContext, services: Services
) -> DeleteTopicsResponse:
    chosen, refused = _resolve_topics(wanted, services.controller.committed)
    results: list[KafkaError | None]
    try:
        admit = context.admit_mutations(services.clock)
        results = await wait_at_most(services.controller.delete_topics(list(chosen), admit=admit), timeout_ms, services)
    except KafkaError as problem:
        results = [problem.with_traceback(None)] * len(chosen)
    pairs = zip(chosen.items(), results, strict=True)
    deleted = [_build_result(name, topic_id, problem) for (topic_id, name), problem in pairs]
    return DeleteTopicsResponse(responses=[*deleted, *refused])


def _build_result(name: str | None, topic_id: bytes, problem: KafkaError | None) -> DeletableTopicResult:
    if problem is None:
        return DeletableTopicResult(name=name, topic_id=topic_id)
    return DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=problem.code, error_message=problem.detail or None
    )


def _resolve_topics(
    wanted: list[DeleteTopicState], image: MetadataImage
) -> tuple[dict[bytes, str], list[DeletableTopicResult]]:
    """Return the topics to delete (names by topic id), and an error result for every other name or id."""
    times = Counter((topic.name, topic.topic_id) for topic in wanted)
    chosen: dict[bytes, str] = {}
    refused = []
    for name, topic_id in times:
        try:
            resolved = _resolve_topic(name, topic_id, image, times[name, topic_id])
            other = chosen.setdefault(resolved, image.topics_by_id[resolved].name)
            if times.get((None, resolved)) and times.get((other, ZERO_UUID)):
                del chosen[resolved]
                raise KafkaError(ErrorCode.INVALID_REQUEST, "The topic is given by its name and by its id.")
        except KafkaError as problem:
            refused.append(_build_result(name, topic_id, problem))
    return chosen, refused


def _resolve_topic(name: str | None, topic_id: bytes, image: MetadataImage, times: int) -> bytes:
    """Return the id of the requested topic; raises KafkaError."""
    if times > 1 or (name is None) == (topic_id == ZERO_UUID):
        reason = "Each topic must be given once, by its name or by its id."
        raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
    if name is None:
        if topic_id not in image.topics_by_id:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with the id {format_topic(topic_id)}")
        return topic_id
    if name not in image.topics:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic '{name}'")
    return image.topics[name].topic_id
