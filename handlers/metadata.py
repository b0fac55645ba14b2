"""Metadata (key 3), v0-13: brokers, topics, and the leader of each partition.

v0     an empty list of topics requests all of them; from v1 on null does, and an empty list requests none
v1     controller, racks, internal topics
v4     the client says whether topics may be created
v6     LISTENER_NOT_FOUND for leaders without an address for the client; LEADER_NOT_AVAILABLE before (KIP-302)
v7     leader epochs
v8     authorized operations (of the cluster only to v10)
v9     flexible
v10    topic ids in answers; v12 in requests
v13    an error of its own (KIP-1102)

If a request creates a topic, the answer comes once the topic's leader accepts writes. Kafka answers at once that it does
not know the topic, and names leaders that may still refuse.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from kafkacompat.handlers.authorized_operations import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.endpoints import ClusterSight
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.metadata.image import PartitionImage, TopicImage
from kafkacompat.metadata.topic_changes import NewTopic
from kafkacompat.metadata.topic_names import is_internal, missing_topic_error
from kafkacompat.timers import make_steps, yield_in_turns
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

if TYPE_CHECKING:
    from kafkacompat.handlers.cluster_role import ClusterRole

log = logging.getLogger(__name__)

TOPIC_ID_VERSION = 12
LISTENER_NOT_FOUND_VERSION = 6
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
PARTITIONS_IN_A_STEP = 100
# Another client may have created the topic first; a full disk is logged once elsewhere. A client whose instance has reached a limit
# asks again and again.
NOT_WORTH_A_LINE = (
    ErrorCode.TOPIC_ALREADY_EXISTS,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.POLICY_VIOLATION,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
)

MetadataResult: TypeAlias = "MetadataResponse | Pending[MetadataResponse]"
Find: TypeAlias = "Callable[[Any, _Sight], TopicImage | MetadataResponseTopic]"
"""Returns a topic, or the answer for one that does not exist."""


class _Sight(ClusterSight):
    """The cluster as the response describes it."""

    def __init__(self, context: RequestContext, services: Services) -> None:
        super().__init__(context, services)
        self.version = context.api_version
        self._hides_unreachable = self.version == 0 and services.cluster is not None

    def select(self, nodes: Sequence[int]) -> list[int]:
        """Return the replicas that the response lists: clients of version 0 know no replica whose address they lack."""
        return [node for node in nodes if node in self.reachable] if self._hides_unreachable else list(nodes)


def handle_metadata(request: MetadataRequest, context: RequestContext, services: Services) -> MetadataResult:
    """Describe the cluster, after creating the topics that the request is allowed to create."""
    if _is_malformed(request, context):
        return answer_in_order(_reject_topics(request.topics or [], services))
    if services.cluster is not None and not services.metadata.image.brokers:
        return answer_in_order(_answer_when_informed(services.cluster, request, context, services))
    missing = _list_topics_to_create(request, context, services)
    if missing:
        return answer_in_order(_create_topics_and_answer(missing, request, context, services))
    return _build_answer(request, context, services)


async def _answer_when_informed(
    cluster: ClusterRole, request: MetadataRequest, context: RequestContext, services: Services
) -> MetadataResponse:
    """Wait for the metadata of a broker that has just started: an answer without brokers would lead clients astray."""
    await cluster.wait_until_informed()
    if missing := _list_topics_to_create(request, context, services):
        return await _create_topics_and_answer(missing, request, context, services)
    answer = _build_answer(request, context, services)
    return await answer.response if isinstance(answer, Pending) else answer


async def _create_topics_and_answer(
    missing: list[str], request: MetadataRequest, context: RequestContext, services: Services
) -> MetadataResponse:
    # The coordinators create the internal topics, with the configs that these need.
    wanted = [
        _build_topic(name, context)
        async for name in yield_in_turns(services.clock, missing)
        if missing_topic_error(name) == UNKNOWN and not is_internal(name)
    ]
    if wanted:
        await _create_topics(wanted, context, services)
    answer = _build_answer(request, context, services)
    return await answer.response if isinstance(answer, Pending) else answer


def _build_topic(name: str, context: RequestContext) -> NewTopic:
    if context.tenant is None:
        return NewTopic(name)
    # A broker without instances does not pay for them.
    from kafkacompat.handlers.tenants.new_topics import complete_topic

    return complete_topic(NewTopic(name), context.tenant)


async def _create_topics(wanted: list[NewTopic], context: RequestContext, services: Services) -> None:
    try:
        if services.cluster is None:
            services.replica_manager.directories.check_room()
        results = await services.controller.create_topics(wanted, admit=context.admit_mutations(services.clock))
    except KafkaError as problem:
        if problem.code not in NOT_WORTH_A_LINE:
            log.warning("Cannot create %d requested topics: %s", len(wanted), problem.detail)
        return
    for topic, result in zip(wanted, results, strict=True):
        if isinstance(result, KafkaError) and result.code not in NOT_WORTH_A_LINE:
            log.warning("Cannot create requested topic %s: %s", topic.name, result.detail)


def _asks_for_all(request: MetadataRequest, context: RequestContext) -> bool:
    return request.topics is None or (context.api_version == 0 and not request.topics)


def _is_malformed(request: MetadataRequest, context: RequestContext) -> bool:
    """Return whether a topic lacks a required name, or has an id that the version does not allow."""
    topics = request.topics or []
    if context.api_version < TOPIC_ID_VERSION:
        return any(topic.name is None or topic.topic_id != ZERO_UUID for topic in topics)
    return any(topic.name is None and topic.topic_id == ZERO_UUID for topic in topics)


async def _reject_topics(topics: list[MetadataRequestTopic], services: Services) -> MetadataResponse:
    code = ErrorCode.INVALID_REQUEST
    refused = [
        MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id)
        async for topic in yield_in_turns(services.clock, topics)
    ]
    return MetadataResponse(error_code=code, topics=refused)


def _list_topic_ids(request: MetadataRequest) -> list[bytes]:
    """List the requested topic ids, each once; if there are any, names are ignored."""
    return list(dict.fromkeys(topic.topic_id for topic in request.topics or [] if topic.topic_id != ZERO_UUID))


def _list_topic_names(request: MetadataRequest) -> list[str]:
    return list(dict.fromkeys(topic.name for topic in request.topics or [] if topic.name is not None))


def _list_topics_to_create(request: MetadataRequest, context: RequestContext, services: Services) -> list[str]:
    """List the requested topics that do not exist, if the request may create them."""
    if not request.allow_auto_topic_creation or _asks_for_all(request, context) or _list_topic_ids(request):
        return []
    if not services.config.bool("auto.create.topics.enable"):
        return []
    topics = services.metadata.image.topics
    return [name for name in _list_topic_names(request) if name not in topics]


def _build_answer(request: MetadataRequest, context: RequestContext, services: Services) -> MetadataResult:
    sight = _Sight(context, services)
    image = sight.image
    find, wanted = _select_topics(request, context, sight)
    response = MetadataResponse(
        brokers=[MetadataResponseBroker(**broker._asdict()) for broker in sight.reachable.values()],
        cluster_id=image.cluster_id,
        controller_id=sight.controller_id,
    )
    later = make_steps(services.clock, _describe_topics(response.topics, (find(key, sight) for key in wanted), sight))
    if later is None:
        return _add_authorized_operations(response, request)
    return Pending(later.addCallback(lambda _: _add_authorized_operations(response, request)), in_order=True)


def _add_authorized_operations(response: MetadataResponse, request: MetadataRequest) -> MetadataResponse:
    if request.include_topic_authorized_operations:
        for topic in response.topics:
            if topic.name is not None:
                topic.topic_authorized_operations = TOPIC_OPERATIONS
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


def _select_topics(request: MetadataRequest, context: RequestContext, sight: _Sight) -> tuple[Find, Iterable[Any]]:
    """Return the function that finds a topic, and its arguments."""
    if _asks_for_all(request, context):
        return lambda topic, _: topic, sight.image.topics.values()
    if ids := _list_topic_ids(request):
        return _find_topic_by_id, ids
    return _find_topic_by_name, _list_topic_names(request)


def _find_topic_by_id(topic_id: bytes, sight: _Sight) -> TopicImage | MetadataResponseTopic:
    topic = sight.image.topics_by_id.get(topic_id)
    if topic is None:
        return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
    return topic


def _find_topic_by_name(name: str, sight: _Sight) -> TopicImage | MetadataResponseTopic:
    topic = sight.image.topics.get(name)
    if topic is None:
        return MetadataResponseTopic(error_code=missing_topic_error(name), name=name, is_internal=is_internal(name))
    return topic


def _describe_topics(
    described: list[MetadataResponseTopic], topics: Iterable[TopicImage | MetadataResponseTopic], sight: _Sight
) -> Iterator[None]:
    """Add the topics to a response, with a step for each, and for each few partitions of a large one."""
    for topic in topics:
        if isinstance(topic, MetadataResponseTopic):
            described.append(topic)
        else:
            yield from _describe_topic(described, topic, sight)
        yield


def _describe_topic(described: list[MetadataResponseTopic], topic: TopicImage, sight: _Sight) -> Iterator[None]:
    partitions: list[MetadataResponsePartition] = []
    described.append(
        MetadataResponseTopic(
            name=topic.name, topic_id=topic.topic_id, is_internal=is_internal(topic.name), partitions=partitions
        )
    )
    for start in range(0, len(topic.partitions), PARTITIONS_IN_A_STEP):
        if start:
            yield
        part = topic.partitions[start : start + PARTITIONS_IN_A_STEP]
        partitions += [_describe_partition(partition, sight) for partition in part]


def _describe_partition(partition: PartitionImage, sight: _Sight) -> MetadataResponsePartition:
    leader, error = sight.find_leader(partition)
    if error == ErrorCode.LISTENER_NOT_FOUND and sight.version < LISTENER_NOT_FOUND_VERSION:
        error = ErrorCode.LEADER_NOT_AVAILABLE
    replicas, in_sync = sight.select(partition.replicas), sight.select(partition.in_sync_replicas)
    if not error and (len(replicas) < len(partition.replicas) or len(in_sync) < len(partition.in_sync_replicas)):
        error = ErrorCode.REPLICA_NOT_AVAILABLE
    return MetadataResponsePartition(
        error_code=error,
        partition_index=partition.partition,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=in_sync,
        offline_replicas=sight.list_offline(partition),
    )
