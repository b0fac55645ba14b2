"""ElectLeaders (key 43), v0-2: let the preferred, or any living, replica lead.

v1     unclean elections (KIP-460), and an error for the whole request
v2     flexible

In a cluster the controller elects. On a single node there is no other replica to elect: either the leader is the preferred one,
or the partition has no leader at all; the request's timeout has no effect.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkacompat.cluster.decisions.leader_balance import ElectionType
from kafkacompat.cluster.decisions.situation import TopicPartition
from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.controller_apis import build_refusal
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.handlers.per_partition import list_by_topic
from kafkacompat.handlers.waiting import wait_at_most
from kafkacompat.metadata.image import NO_LEADER, MetadataImage
from kafkacompat.wire.apis.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError

# By election type: the error for a partition whose leader no replica can replace.
NOBODY_TO_ELECT = {0: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, 1: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE}


def handle_elect_leaders(
    request: ElectLeadersRequest, context: RequestContext, services: Services
) -> ElectLeadersResponse | Pending[ElectLeadersResponse]:
    """Elect leaders; a request for all partitions returns only those that need an election."""
    if services.cluster is not None and request.election_type in NOBODY_TO_ELECT:
        return answer_in_order(_elect_leaders(request, services))
    return _refuse_elections(request, services)


async def _elect_leaders(request: ElectLeadersRequest, services: Services) -> ElectLeadersResponse:
    wanted: list[TopicPartition] | None = None
    if request.topic_partitions is not None:
        wanted = [
            TopicPartition(topic.topic, index) for topic in request.topic_partitions for index in topic.partitions
        ]
    try:
        electing = (
            services.require_cluster().require_active().elect_leaders(ElectionType(request.election_type), wanted)
        )
        outcomes = await wait_at_most(electing, request.timeout_ms, services)
    except KafkaError as problem:
        refusal: ElectLeadersResponse = build_refusal(request, problem.with_traceback(None))
        return refusal
    topics = list_by_topic(
        outcomes,
        lambda index, code, detail: PartitionResult(partition_id=index, error_code=code, error_message=detail),
    )
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(topic=topic, partition_result=results) for topic, results in topics.items()
        ]
    )


def _refuse_elections(request: ElectLeadersRequest, services: Services) -> ElectLeadersResponse:
    """Return for each partition why no leader is elected; a request for all partitions returns only those without one."""
    image, kind = services.metadata.image, request.election_type
    everything, known = request.topic_partitions is None, kind in NOBODY_TO_ELECT
    wanted = request.topic_partitions
    if wanted is None:
        wanted = _list_leaderless_candidates(image) if known else []
    results = [
        ReplicaElectionResult(
            topic=topic.topic, partition_result=list(_report_partitions(topic, kind, image, skip_led=everything))
        )
        for topic in wanted
    ]
    code = ErrorCode.NONE if known or request.topic_partitions == [] else ErrorCode.INVALID_REQUEST
    return ElectLeadersResponse(error_code=code, replica_election_results=results)


def _list_leaderless_candidates(image: MetadataImage) -> list[TopicPartitions]:
    return [
        TopicPartitions(topic=topic.name, partitions=[partition.partition for partition in topic.partitions])
        for topic in image.topics.values()
    ]


def _report_partitions(
    topic: TopicPartitions, kind: int, image: MetadataImage, *, skip_led: bool
) -> Iterable[PartitionResult]:
    for index in topic.partitions:
        problem = _explain_refusal(topic.topic, index, kind, image)
        if not (skip_led and problem.code == ErrorCode.ELECTION_NOT_NEEDED):
            yield PartitionResult(partition_id=index, error_code=problem.code, error_message=problem.detail)


def _explain_refusal(name: str, index: int, kind: int, image: MetadataImage) -> KafkaError:
    if kind not in NOBODY_TO_ELECT:
        return KafkaError(ErrorCode.INVALID_REQUEST, f"there are no elections of type {kind}")
    partition = image.partition(name, index)
    if partition is None:
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name}-{index}")
    if partition.leader != NO_LEADER:
        return KafkaError(ErrorCode.ELECTION_NOT_NEEDED, f"{name}-{index} is led by node {partition.leader} already")
    return KafkaError(NOBODY_TO_ELECT[kind], f"no living node has {name}-{index}")
