"""Metadata (key 3), v0-13: brokers, topics, and who leads which partition.

v0     an empty list of topics asks for all of them; from v1 null does, and an empty list for none
v1     controller, racks, internal topics
v4     the client says whether topics may be made
v7     leader epochs
v8     authorized operations (of the cluster only to v10)
v9     flexible
v10    topic ids in answers; v12 in requests
v13    an error of its own (KIP-1102)

A topic made by being asked for is answered once its leader takes writes. Kafka answers at once that it
does not know the topic, and names leaders that may still refuse.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from kafkacompat.handlers.authorized_operations import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.ordering import in_order
from kafkacompat.metadata.advertised import address
from kafkacompat.metadata.image import NO_LEADER, MetadataImage, PartitionImage, TopicImage
from kafkacompat.metadata.topic_changes import NewTopic
from kafkacompat.metadata.topic_names import error_of_missing, is_internal
from kafkacompat.timers import go_through, in_turns
from kafkacompat.wire.apis.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import ZERO_UUID

log = logging.getLogger(__name__)

TOPIC_ID_VERSION = 12
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
# Another client may have asked for the topic first; of a full disk the log says once that it is.
NOT_WORTH_A_LINE = (ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.KAFKA_STORAGE_ERROR)

MetadataResult: TypeAlias = "MetadataResponse | Pending[MetadataResponse]"
Describe: TypeAlias = "Callable[[Any, MetadataImage], MetadataResponseTopic]"


def handle_metadata(request: MetadataRequest, context: RequestContext, services: Services) -> MetadataResult:
    """Describe the cluster, after making the topics that are to be made."""
    if _is_malformed(request, context):
        return in_order(_refuse(request.topics or [], services))
    missing = _missing(request, context, services)
    if missing:
        return in_order(_make_and_answer(missing, request, context, services))
    return _answer(request, context, services)


async def _make_and_answer(
    missing: list[str], request: MetadataRequest, context: RequestContext, services: Services
) -> MetadataResponse:
    # The brokers' own topics are made by who uses them, with what they need.
    wanted = [
        NewTopic(name)
        async for name in in_turns(services.clock, missing)
        if error_of_missing(name) == UNKNOWN and not is_internal(name)
    ]
    if wanted:
        await _make(wanted, services)
    answer = _answer(request, context, services)
    return await answer.response if isinstance(answer, Pending) else answer


async def _make(wanted: list[NewTopic], services: Services) -> None:
    try:
        services.replica_manager.directories.check_room()
        results = await services.controller.create_topics(wanted)
    except KafkaError as problem:
        if problem.code not in NOT_WORTH_A_LINE:
            log.warning("%d topics were asked for and cannot be made: %s", len(wanted), problem.detail)
        return
    for topic, result in zip(wanted, results, strict=True):
        if isinstance(result, KafkaError) and result.code not in NOT_WORTH_A_LINE:
            log.warning("topic %s was asked for and cannot be made: %s", topic.name, result.detail)


def _asks_for_all(request: MetadataRequest, context: RequestContext) -> bool:
    return request.topics is None or (context.api_version == 0 and not request.topics)


def _is_malformed(request: MetadataRequest, context: RequestContext) -> bool:
    """Whether a topic has no name where it needs one, or an id that its version does not allow."""
    topics = request.topics or []
    if context.api_version < TOPIC_ID_VERSION:
        return any(topic.name is None or topic.topic_id != ZERO_UUID for topic in topics)
    return any(topic.name is None and topic.topic_id == ZERO_UUID for topic in topics)


async def _refuse(topics: list[MetadataRequestTopic], services: Services) -> MetadataResponse:
    code = ErrorCode.INVALID_REQUEST
    refused = [
        MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id)
        async for topic in in_turns(services.clock, topics)
    ]
    return MetadataResponse(error_code=code, topics=refused)


def _ids(request: MetadataRequest) -> list[bytes]:
    """The topic ids asked for, each once; with any of them, names are not looked at."""
    return list(dict.fromkeys(topic.topic_id for topic in request.topics or [] if topic.topic_id != ZERO_UUID))


def _names(request: MetadataRequest) -> list[str]:
    return list(dict.fromkeys(topic.name for topic in request.topics or [] if topic.name is not None))


def _missing(request: MetadataRequest, context: RequestContext, services: Services) -> list[str]:
    """The names asked for that no topic has, should topics be made by being asked for."""
    if not request.allow_auto_topic_creation or _asks_for_all(request, context) or _ids(request):
        return []
    if not services.config.bool("auto.create.topics.enable"):
        return []
    topics = services.metadata.image.topics
    return [name for name in _names(request) if name not in topics]


def _answer(request: MetadataRequest, context: RequestContext, services: Services) -> MetadataResult:
    image = services.metadata.image
    describe, wanted = _wanted(request, context, image)
    response = MetadataResponse(
        brokers=[_broker(image, node_id, context) for node_id in image.brokers],
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
    )
    later = go_through(services.clock, map(response.topics.append, (describe(each, image) for each in wanted)))
    if later is None:
        return _with_operations(response, request)
    return Pending(later.addCallback(lambda _: _with_operations(response, request)), in_order=True)


def _with_operations(response: MetadataResponse, request: MetadataRequest) -> MetadataResponse:
    if request.include_topic_authorized_operations:
        for topic in response.topics:
            if topic.name is not None:
                topic.topic_authorized_operations = TOPIC_OPERATIONS
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


def _broker(image: MetadataImage, node_id: int, context: RequestContext) -> MetadataResponseBroker:
    broker = image.brokers[node_id]
    host, port = address(broker, context.peer)
    return MetadataResponseBroker(node_id=node_id, host=host, port=port, rack=broker.rack)


def _wanted(request: MetadataRequest, context: RequestContext, image: MetadataImage) -> tuple[Describe, Iterable[Any]]:
    """What is to be described, and how."""
    if _asks_for_all(request, context):
        return _topic, image.topics.values()
    if ids := _ids(request):
        return _topic_by_id, ids
    return _topic_by_name, _names(request)


def _topic_by_id(topic_id: bytes, image: MetadataImage) -> MetadataResponseTopic:
    topic = image.topics_by_id.get(topic_id)
    if topic is None:
        return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
    return _topic(topic, image)


def _topic_by_name(name: str, image: MetadataImage) -> MetadataResponseTopic:
    topic = image.topics.get(name)
    if topic is None:
        return MetadataResponseTopic(error_code=error_of_missing(name), name=name, is_internal=is_internal(name))
    return _topic(topic, image)


def _topic(topic: TopicImage, image: MetadataImage) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=[_partition(each, image) for each in topic.partitions],
    )


def _partition(each: PartitionImage, image: MetadataImage) -> MetadataResponsePartition:
    led = each.leader in image.brokers
    return MetadataResponsePartition(
        error_code=ErrorCode.NONE if led else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=each.partition,
        leader_id=each.leader if led else NO_LEADER,
        leader_epoch=each.leader_epoch,
        replica_nodes=list(each.replicas),
        isr_nodes=list(each.in_sync_replicas),
        offline_replicas=[node for node in each.replicas if node not in image.brokers],
    )
