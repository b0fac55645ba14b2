"""CreatePartitions (key 37), v0-3: give topics more partitions.

v2     flexible
v3     a client that has used up its quota of changes gets THROTTLING_QUOTA_EXCEEDED (KIP-599)

The answer comes once the new partitions accept writes; on a single node the request's timeout has no effect.
"""

from __future__ import annotations

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.named_once import NAMED_TWICE, split_duplicates
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.handlers.waiting import wait_at_most
from kafkacompat.metadata.topic_changes import NewPartitions
from kafkacompat.wire.apis.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from kafkacompat.wire.errors import KafkaError


def handle_create_partitions(
    request: CreatePartitionsRequest, context: RequestContext, services: Services
) -> Pending[CreatePartitionsResponse]:
    """Add partitions to every topic that the request names once."""
    return answer_in_order(_create_partitions(request, context, services))


async def _create_partitions(
    request: CreatePartitionsRequest, context: RequestContext, services: Services
) -> CreatePartitionsResponse:
    wanted, named_twice = split_duplicates(request.topics)
    results: list[KafkaError | None]
    try:
        # Partitions that already exist need no room.
        known = services.metadata.image.topics
        if services.cluster is None and any(topic.name in known for topic in wanted):
            services.replica_manager.directories.check_room()
        more = [_parse_growth(topic) for topic in wanted]
        growing = services.controller.create_partitions(
            more, validate_only=request.validate_only, admit=context.admit_mutations(services.clock)
        )
        results = await wait_at_most(growing, request.timeout_ms, services)
    except KafkaError as problem:
        results = [problem.with_traceback(None)] * len(wanted)
    return CreatePartitionsResponse(
        results=[
            *(_build_result(topic.name, problem) for topic, problem in zip(wanted, results, strict=True)),
            *(_build_result(name, NAMED_TWICE) for name in named_twice),
        ]
    )


def _parse_growth(topic: CreatePartitionsTopic) -> NewPartitions:
    assignments = None if topic.assignments is None else [assignment.broker_ids for assignment in topic.assignments]
    return NewPartitions(topic.name, topic.count, assignments)


def _build_result(name: str, problem: KafkaError | None) -> CreatePartitionsTopicResult:
    if problem is None:
        return CreatePartitionsTopicResult(name=name)
    return CreatePartitionsTopicResult(name=name, error_code=problem.code, error_message=problem.detail or None)
