"""What single APIs need for instances besides the translation of names: requests for everything, and answers about the brokers.

A hook that returns an iterator does its work in short steps.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

from kafkacompat.groups.offsets_topic import OFFSETS_TOPIC
from kafkacompat.handlers.every_topic import EveryTopic
from kafkacompat.tenancy.capacity import HeldBackError
from kafkacompat.tenancy.names import ILLEGAL
from kafkacompat.tenancy.resolving import TRANSACTION_KEY
from kafkacompat.wire import entities
from kafkacompat.wire.apis.describe_log_dirs import DescribeLogDirsResult, DescribeLogDirsTopic
from kafkacompat.wire.apis.describe_topic_partitions import TopicRequest
from kafkacompat.wire.apis.elect_leaders import TopicPartitions
from kafkacompat.wire.apis.metadata import MetadataRequestTopic
from kafkacompat.wire.apis.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkacompat.handlers.context import RequestContext, Services
    from kafkacompat.tenancy.tenant_view import TenantView
    from kafkacompat.wire.schema import Response

STEP_ITEMS = 256
UNKNOWN_BYTES = -1
"""The size of a volume that the response does not give."""
ELECTION_TYPES = (0, 1)
NO_REPLICA = -1
REPLICA_STATE_VERSION = 15


class AllPartitions(list[TopicPartitions]):
    """The partitions of an instance, in place of a request for all partitions."""


def _require_tenant(context: RequestContext) -> TenantView:
    assert context.tenant is not None
    return context.tenant


def _list_own_topics(context: RequestContext, services: Services) -> Iterator[tuple[str, int]]:
    """Yield the physical name of each topic of the instance, and the number of its partitions."""
    image = services.metadata.image
    for name in services.instances.list_topics(_require_tenant(context)):
        topic = image.topics.get(name)
        if topic is not None:
            yield name, len(topic.partitions)


# Topics


def narrow_metadata(request: Any, context: RequestContext, services: Services) -> Iterator[None] | None:
    """Turn a request for all topics into one for the topics of the instance."""
    if not _require_tenant(context).instance.value("auto.create.topics.enable"):
        request.allow_auto_topic_creation = False
    if request.topics is None or (context.api_version == 0 and not request.topics):
        return _name_own_topics(request, context, services)
    return None


def _name_own_topics(request: Any, context: RequestContext, services: Services) -> Iterator[None]:
    request.allow_auto_topic_creation = False
    request.topics = EveryTopic()
    for count, (name, _) in enumerate(_list_own_topics(context, services), 1):
        request.topics.append(MetadataRequestTopic(name=name))
        if count % STEP_ITEMS == 0:
            yield
    if not request.topics:
        # An empty list of version 0 requests all topics.
        request.topics.append(MetadataRequestTopic(name=ILLEGAL))


def narrow_topic_pages(request: Any, context: RequestContext, services: Services) -> Iterator[None] | None:
    """Turn a request of DescribeTopicPartitions for all topics into one for the topics of the instance."""
    return None if request.topics else _name_own_pages(request, context, services)


def _name_own_pages(request: Any, context: RequestContext, services: Services) -> Iterator[None]:
    cursor = request.cursor
    first = "" if cursor is None else cursor.topic_name
    is_valid = cursor is None or cursor.partition_index >= 0
    request.topics = EveryTopic()
    for count, (name, _) in enumerate(_list_own_topics(context, services), 1):
        if name >= first and is_valid:
            request.topics.append(TopicRequest(name=name))
        if count % STEP_ITEMS == 0:
            yield
    if not request.topics:
        # An empty list requests all topics.
        request.topics.append(TopicRequest(name=ILLEGAL))
        request.cursor = None
    elif request.topics[0].name != first:
        # The topic of the cursor does not exist: the page begins with the next topic.
        request.cursor = None


def finish_topics(request: Any, response: Any, context: RequestContext, services: Services) -> None:
    """Leave out the name that stands for no topic."""
    if request.topics and request.topics[0].name == ILLEGAL:
        response.topics = []


def narrow_elections(request: Any, context: RequestContext, services: Services) -> Iterator[None] | None:
    """Turn a request for elections in all partitions into one for the partitions of the instance."""
    if request.topic_partitions is None and request.election_type in ELECTION_TYPES:
        return _name_own_partitions(request, context, services)
    return None


def _name_own_partitions(request: Any, context: RequestContext, services: Services) -> Iterator[None]:
    request.topic_partitions = AllPartitions()
    for name, count in _list_own_topics(context, services):
        request.topic_partitions.append(TopicPartitions(topic=name, partitions=list(range(count))))
        yield


def finish_elections(request: Any, response: Any, context: RequestContext, services: Services) -> Iterator[None] | None:
    """Leave out the partitions that need no election if the client has requested all partitions."""
    return _leave_out_led(response, services) if isinstance(request.topic_partitions, AllPartitions) else None


def _leave_out_led(response: Any, services: Services) -> Iterator[None]:
    for topic in response.replica_election_results:
        topic.partition_result = [
            result for result in topic.partition_result if result.error_code != ErrorCode.ELECTION_NOT_NEEDED
        ]
        yield
    if services.cluster is not None:
        response.replica_election_results = [
            topic for topic in response.replica_election_results if topic.partition_result
        ]


# Log directories


def finish_log_directories(
    request: Any, response: Any, context: RequestContext, services: Services
) -> Iterator[None] | None:
    """Show the directories of the broker as one, whose size is not given."""
    if not response.results:
        return None
    return _join_directories(response)


def _join_directories(response: Any) -> Iterator[None]:
    results = response.results
    whole: DescribeLogDirsResult = min(results, key=lambda result: bool(result.error_code))
    topics: dict[str, DescribeLogDirsTopic] = {}
    for result in results:
        for topic in result.topics:
            known = topics.setdefault(topic.name, topic)
            if known is not topic:
                known.partitions += topic.partitions
            yield
    whole.topics = list(topics.values())
    whole.total_bytes = whole.usable_bytes = UNKNOWN_BYTES
    whole.is_cordoned = False
    response.results = [whole]


# Data


def refuse_replicas(request: Any, context: RequestContext, services: Services) -> None:
    """Raise CLUSTER_AUTHORIZATION_FAILED for a Fetch of a replica: no broker is a client of an instance."""
    by_state = context.api_version >= REPLICA_STATE_VERSION
    replica_id = request.replica_state.replica_id if by_state else request.replica_id
    if replica_id > NO_REPLICA:
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "a client of an instance is not a replica")


def hold_back_markers(
    request: Any, context: RequestContext, services: Services
) -> Generator[None, None, Response | None]:
    """Refuse markers while the instance is full: they take space, and clients may write any number of them."""
    to_physical = _require_tenant(context).names.to_physical[entities.TOPIC]
    for topic in (topic for marker in request.markers for topic in marker.topics):
        for index in topic.partition_indexes:
            problem = _find_lack_of_room(to_physical[topic.name], index, services)
            if problem is not None:
                return _refuse_markers(request, problem)
            yield
    return None


def _find_lack_of_room(topic: str, index: int, services: Services) -> KafkaError | None:
    try:
        account = services.replica_manager.find(topic, index).state.account
        if account is not None:
            account.check_room()
    except HeldBackError as problem:
        return problem.with_traceback(None)
    except KafkaError:
        # The handler answers for a partition that is not here.
        pass
    return None


def _refuse_markers(request: Any, problem: KafkaError) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=problem.code)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


# Coordinators


def finish_coordinators(request: Any, response: Any, context: RequestContext, services: Services) -> Iterator[None]:
    """Name the keys as the client does; their kind is in the request."""
    kind = entities.TRANSACTIONAL_ID if request.key_type == TRANSACTION_KEY else entities.GROUP
    to_client = _require_tenant(context).names.to_client[kind]
    for count, coordinator in enumerate(response.coordinators, 1):
        coordinator.key = to_client[coordinator.key]
        if count % STEP_ITEMS == 0:
            yield


def show_offsets_topic(response: Any, context: RequestContext, services: Services) -> None:
    """Let DescribeTransactions name the offsets topic, whose partitions a transaction of the instance may hold."""
    shown = _require_tenant(context).names.to_physical[entities.TOPIC][OFFSETS_TOPIC]
    for state in response.transaction_states:
        for topic in state.topics:
            if topic.topic == OFFSETS_TOPIC:
                topic.topic = shown
