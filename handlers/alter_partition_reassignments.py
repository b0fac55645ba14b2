"""AlterPartitionReassignments (key 45), v0-1: give partitions to other nodes (KIP-455).

v1     says whether the number of replicas may change (KIP-860)

In a cluster the controller reassigns. On a single node a partition can only be assigned to the node that has it, which changes nothing. No reassignment is ever
in progress, so there is none to cancel. The request's timeout has no effect.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkacompat.cluster.decisions.situation import TopicPartition
from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.controller_apis import build_refusal
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.handlers.per_partition import list_by_topic
from kafkacompat.handlers.waiting import wait_at_most
from kafkacompat.metadata.image import MetadataImage, PartitionImage
from kafkacompat.metadata.placement import check_assignment
from kafkacompat.wire.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopic,
    ReassignableTopicResponse,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError


def handle_alter_partition_reassignments(
    request: AlterPartitionReassignmentsRequest, context: RequestContext, services: Services
) -> AlterPartitionReassignmentsResponse | Pending[AlterPartitionReassignmentsResponse]:
    """Accept or reject each reassignment; those that are accepted may go on for long after the response."""
    if services.cluster is not None:
        return answer_in_order(_reassign_partitions(request, services))
    return _check_reassignments(request, services)


async def _reassign_partitions(
    request: AlterPartitionReassignmentsRequest, services: Services
) -> AlterPartitionReassignmentsResponse:
    wanted = {
        TopicPartition(topic.name, partition.partition_index): partition.replicas
        for topic in request.topics
        for partition in topic.partitions
    }
    try:
        reassigning = (
            services.require_cluster()
            .require_active()
            .reassign_partitions(wanted, factor_may_change=request.allow_replication_factor_change)
        )
        outcomes = await wait_at_most(reassigning, request.timeout_ms, services)
    except KafkaError as problem:
        refusal: AlterPartitionReassignmentsResponse = build_refusal(request, problem.with_traceback(None))
        return refusal
    topics = list_by_topic(
        outcomes,
        lambda index, code, detail: ReassignablePartitionResponse(
            partition_index=index, error_code=code, error_message=detail
        ),
    )
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=[ReassignableTopicResponse(name=name, partitions=results) for name, results in topics.items()],
    )


def _check_reassignments(
    request: AlterPartitionReassignmentsRequest, services: Services
) -> AlterPartitionReassignmentsResponse:
    image = services.metadata.image
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        responses=[
            ReassignableTopicResponse(
                name=topic.name, partitions=[_reassign_partition(topic, wanted, image) for wanted in topic.partitions]
            )
            for topic in request.topics
        ],
    )


def _reassign_partition(
    topic: ReassignableTopic, wanted: ReassignablePartition, image: MetadataImage
) -> ReassignablePartitionResponse:
    response = ReassignablePartitionResponse(partition_index=wanted.partition_index, error_message=None)
    try:
        partition = image.partition(topic.name, wanted.partition_index)
        if partition is None:
            reason = f"there is no partition {topic.name}-{wanted.partition_index}"
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, reason)
        _check_reassignment(partition, wanted.replicas, image)
    except KafkaError as problem:
        response.error_code, response.error_message = problem.code, problem.detail
    return response


def _check_reassignment(partition: PartitionImage, replicas: Sequence[int] | None, image: MetadataImage) -> None:
    if replicas is None:
        raise KafkaError(
            ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "no reassignment is in progress that could be cancelled"
        )
    check_assignment(replicas, image.brokers.keys(), None)
    if tuple(replicas) != partition.replicas:
        reason = f"the partition is on {list(partition.replicas)} and cannot be moved to {replicas} by a single node"
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
