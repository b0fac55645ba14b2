"""CreateTopics (key 19), v0-7: create topics.

v1     validate_only; error messages
v4     counts of -1 stand for the broker's defaults
v5     flexible; the answer has the topic's size and configuration
v6     a client that has used up its quota of changes gets THROTTLING_QUOTA_EXCEEDED (KIP-599)
v7     the answer has the topic's id

The answer comes once the leaders accept writes; on a single node the request's timeout has no effect.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkacompat.handlers.config_entries import ConfigEntries
from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.named_once import NAMED_TWICE, split_duplicates
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.handlers.waiting import wait_at_most
from kafkacompat.metadata.image import TopicImage
from kafkacompat.metadata.topic_changes import NewTopic
from kafkacompat.wire.apis.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafkacompat.wire.errors import KafkaError


def handle_create_topics(
    request: CreateTopicsRequest, context: RequestContext, services: Services
) -> Pending[CreateTopicsResponse]:
    """Create every topic that the request names once."""
    return answer_in_order(_create_topics(request, context, services))


async def _create_topics(
    request: CreateTopicsRequest, context: RequestContext, services: Services
) -> CreateTopicsResponse:
    wanted, named_twice = split_duplicates(request.topics)
    results: list[TopicImage | KafkaError]
    try:
        known = services.metadata.image.topics
        if services.cluster is None and any(topic.name not in known for topic in wanted):
            services.replica_manager.directories.check_room()
        new = [_parse_topic(topic) for topic in wanted]
        creating = services.controller.create_topics(
            new, validate_only=request.validate_only, admit=context.admit_mutations(services.clock)
        )
        results = await wait_at_most(creating, request.timeout_ms, services)
    except KafkaError as problem:
        results = [problem.with_traceback(None)] * len(wanted)
    entries = ConfigEntries(services.config, services.effective.config, services.controller.committed)
    return CreateTopicsResponse(
        topics=[
            *(
                _build_result(topic, result, entries, services.effective.find_topic_defaults(topic.name))
                for topic, result in zip(wanted, results, strict=True)
            ),
            *(_build_error(name, NAMED_TWICE) for name in named_twice),
        ]
    )


def _parse_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        [(assignment.partition_index, assignment.broker_ids) for assignment in topic.assignments],
        {config.name: config.value for config in topic.configs},
    )


def _build_error(name: str, problem: KafkaError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=problem.code, error_message=problem.detail or None)


def _build_result(
    wanted: CreatableTopic, made: TopicImage | KafkaError, entries: ConfigEntries, defaults: Mapping[str, str]
) -> CreatableTopicResult:
    if isinstance(made, KafkaError):
        return _build_error(wanted.name, made)
    overrides = {config.name: config.value for config in wanted.configs if config.value is not None}
    return CreatableTopicResult(
        name=made.name,
        topic_id=made.topic_id,
        error_message=None,
        num_partitions=len(made.partitions),
        replication_factor=len(made.partitions[0].replicas),
        configs=[
            CreatableTopicConfigs(
                name=entry.name,
                value=entry.value,
                read_only=entry.read_only,
                config_source=entry.config_source,
                is_sensitive=entry.is_sensitive,
            )
            for entry in entries.describe_topic(overrides, defaults)
        ],
    )
