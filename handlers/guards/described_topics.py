"""Guards of descriptions of topics and of the cluster.

What a client may not describe is left out, or looks the same whether it exists or not.
"""

from __future__ import annotations

from copy import copy
from typing import Any

from kafkacompat.handlers.every_topic import EveryTopic
from kafkacompat.handlers.guards.access import Access, Handle, change_response, in_turns, wait_for
from kafkacompat.handlers.guards.items import leave_out
from kafkacompat.handlers.guards.refusals import find_struct, make_response
from kafkacompat.handlers.guards.rights import CREATE_TOPIC, DESCRIBE_TOPIC
from kafkacompat.metadata.topic_names import is_internal
from kafkacompat.security.acls.model import AclOperation, AclResourceType
from kafkacompat.timers import yield_in_turns
from kafkacompat.wire.primitives import ZERO_UUID


@in_turns
async def guard_metadata(request: Any, access: Access, handle: Handle) -> Any:
    """Describe the topics that a client may describe, and create those that it may create (Metadata)."""
    version = access.version
    if request.topics is None or (version == 0 and not request.topics) or isinstance(request.topics, EveryTopic):
        response = await wait_for(handle(request))
        names = (topic.name for topic in response.topics)
        described = await access.select_in_turns(AclOperation.DESCRIBE, AclResourceType.TOPIC, names, is_noted=False)
        response.topics = [topic for topic in response.topics if topic.name in described]
        return await _fill_operations(response, request, access)
    if any(_is_malformed(topic, version) for topic in request.topics):
        return await wait_for(handle(request))
    refusals = [
        *await _refuse_undescribable(request, access),
        *await _refuse_uncreatable(request, access),
    ]
    rest = leave_out(request, "topics", [item for item, _ in refusals])
    response = await wait_for(handle(rest))
    if not rest.topics:
        response.topics = []  # Version 0 describes all topics if none is named.
    await _fill_operations(response, request, access)
    response.topics = [*response.topics, *(answer for _, answer in refusals)]
    return response


def _is_malformed(topic: Any, version: int) -> bool:
    has_id = topic.topic_id != ZERO_UUID
    return (topic.name is None or has_id) if version < 12 else (topic.name is None and not has_id)


def _find_name(item: Any, access: Access) -> str | None:
    if item.topic_id == ZERO_UUID:
        name: str = item.name
        return name
    topic = access.image.topics_by_id.get(item.topic_id)
    return None if topic is None else topic.name


async def _refuse_undescribable(request: Any, access: Access) -> list[tuple[Any, Any]]:
    """Return the requested topics that the client may not describe, with their answers."""
    topic_class = find_struct(request, "topics")
    named = [(item, name) for item in request.topics if (name := _find_name(item, access)) is not None]
    described = await access.select_in_turns(AclOperation.DESCRIBE, AclResourceType.TOPIC, (name for _, name in named))
    return [
        (
            item,
            topic_class(
                error_code=DESCRIBE_TOPIC.error,
                name=item.name if item.topic_id == ZERO_UUID else None,
                topic_id=item.topic_id,
            ),
        )
        async for item, name in yield_in_turns(access.services.clock, named)
        if name not in described
    ]


async def _refuse_uncreatable(request: Any, access: Access) -> list[tuple[Any, Any]]:
    """Return the requested topics that do not exist, and that the client may describe but not create, with their answers."""
    if not request.allow_auto_topic_creation or not access.services.config.bool("auto.create.topics.enable"):
        return []
    known = access.image.topics
    names = (item.name for item in request.topics if item.topic_id == ZERO_UUID and item.name not in known)
    missing = await access.select_in_turns(AclOperation.DESCRIBE, AclResourceType.TOPIC, names, is_noted=False)
    if not missing or access.may_on_cluster(AclOperation.CREATE, is_noted=False):
        return []
    missing -= await access.select_in_turns(AclOperation.CREATE, AclResourceType.TOPIC, missing)
    topic_class = find_struct(request, "topics")
    return [
        (item, topic_class(error_code=CREATE_TOPIC.error, name=item.name, is_internal=is_internal(item.name)))
        async for item in yield_in_turns(access.services.clock, request.topics)
        if item.topic_id == ZERO_UUID and item.name in missing
    ]


async def _fill_operations(response: Any, request: Any, access: Access) -> Any:
    if request.include_topic_authorized_operations:
        async for topic in yield_in_turns(access.services.clock, response.topics):
            if topic.name is not None:
                topic.topic_authorized_operations = access.list_operations(AclResourceType.TOPIC, topic.name)
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = _list_cluster_operations(access)
    return response


def _list_cluster_operations(access: Access) -> int:
    """Return what a client may do with the cluster; nothing if it may not describe that."""
    if not access.may_on_cluster(AclOperation.DESCRIBE):
        return 0
    return access.list_operations(AclResourceType.CLUSTER)


def guard_described_cluster(request: Any, access: Access, handle: Handle) -> Any:
    """Show what the client may do with the cluster (DescribeCluster)."""

    def fill(response: Any) -> Any:
        if request.include_cluster_authorized_operations and not response.error_code:
            response.cluster_authorized_operations = _list_cluster_operations(access)
        return response

    return change_response(handle(request), fill)


@in_turns
async def guard_topic_pages(request: Any, access: Access, handle: Handle) -> Any:
    """Describe, page by page, the topics that a client may describe (DescribeTopicPartitions)."""
    topic_class, named_class = find_struct(request, "topics"), type(request).FIELDS["topics"].element.struct
    cursor = request.cursor
    names = dict.fromkeys(topic.name for topic in request.topics)
    requested = {} if isinstance(request.topics, EveryTopic) else names
    if cursor is not None and (cursor.partition_index < 0 or (names and cursor.topic_name not in names)):
        return await wait_for(handle(request))
    first = "" if cursor is None else cursor.topic_name
    candidates = [name for name in (names or access.image.topics) if name >= first]
    described = await access.select_in_turns(AclOperation.DESCRIBE, AclResourceType.TOPIC, candidates)
    refusals = [
        topic_class(error_code=DESCRIBE_TOPIC.error, name=name)
        async for name in yield_in_turns(access.services.clock, requested and candidates)
        if name not in described
    ]
    if not described:
        return make_response(request, topics=refusals)
    rest = copy(request)
    rest.topics = [named_class(name=name) for name in candidates if name in described]
    if first not in described:
        rest.cursor = None
    response = await wait_for(handle(rest))
    async for topic in yield_in_turns(access.services.clock, response.topics):
        topic.topic_authorized_operations = access.list_operations(AclResourceType.TOPIC, topic.name)
    response.topics.extend(refusals)
    return response
