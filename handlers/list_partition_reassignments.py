"""ListPartitionReassignments (key 46), v0: the partitions that move to other nodes (KIP-455).

In a cluster the controller lists them. On a single node there are none.
"""

from __future__ import annotations

from kafkacompat.cluster.decisions.reassignment import list_reassignments
from kafkacompat.cluster.decisions.situation import TopicPartition
from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.handlers.controller_apis import build_refusal
from kafkacompat.wire.apis.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from kafkacompat.wire.errors import KafkaError


def handle_list_partition_reassignments(
    request: ListPartitionReassignmentsRequest, context: RequestContext, services: Services
) -> ListPartitionReassignmentsResponse:
    """List the requested partitions, or all, that are being reassigned."""
    response = ListPartitionReassignmentsResponse(error_message=None)
    if services.cluster is None:
        return response
    wanted: list[TopicPartition] | None = None
    if request.topics is not None:
        wanted = [TopicPartition(topic.name, index) for topic in request.topics for index in topic.partition_indexes]
    try:
        image = services.cluster.require_active().image
    except KafkaError as problem:
        refusal: ListPartitionReassignmentsResponse = build_refusal(request, problem.with_traceback(None))
        return refusal
    topics: dict[str, list[OngoingPartitionReassignment]] = {}
    for (topic, index), partition in list_reassignments(image, wanted).items():
        ongoing = OngoingPartitionReassignment(
            partition_index=index,
            replicas=list(partition.replicas),
            adding_replicas=list(partition.adding_replicas),
            removing_replicas=list(partition.removing_replicas),
        )
        topics.setdefault(topic, []).append(ongoing)
    response.topics = [OngoingTopicReassignment(name=name, partitions=ongoing) for name, ongoing in topics.items()]
    return response
