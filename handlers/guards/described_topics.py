"""Guards of descriptions of topics and of the cluster: what a client may not describe is left out, or looks the same
whether it exists or not."""

from __future__ import annotations

from copy import copy
from typing import Any

from kafkacompat.handlers.guards.access import Access, Handle, change_response
from kafkacompat.handlers.guards.items import find_refused, leave_out
from kafkacompat.handlers.guards.refusals import Items, find_struct, make_response
from kafkacompat.handlers.guards.topics import CREATE_TOPIC, DESCRIBE_TOPIC, TOPIC
from kafkacompat.metadata.topic_names import is_internal
from kafkacompat.security.acls.model import AclOperation, AclResourceType
from kafkacompat.wire.primitives import ZERO_UUID


def guard_metadata(request: Any, access: Access, handle: Handle) -> Any:
    """Describe the topics that a client may describe, and create those that it may create (Metadata)."""
    version = access.version
    if request.topics is None or (version == 0 and not request.topics):
        return change_response(handle(request), lambda response: _show_described(response, request, access))
    if any(_is_malformed(topic, version) for topic in request.topics):
        return handle(request)
    topic_class = find_struct(request, "topics")
    refusals: list[Any] = []
    refused: list[Any] = []
    items = Items(("topics",), ("topics",))
    for item in find_refused(request, items, DESCRIBE_TOPIC, _name_described, access):
        by_id = item.topic_id != ZERO_UUID
        refused.append(item)
        refusals.append(
            topic_class(error_code=DESCRIBE_TOPIC.error, name=None if by_id else item.name, topic_id=item.topic_id)
        )
    for item in _find_uncreatable(request, access, refused):
        refused.append(item)
        refusals.append(topic_class(error_code=CREATE_TOPIC.error, name=item.name, is_internal=is_internal(item.name)))
    rest = leave_out(request, "topics", refused) if refused else request

    def add(response: Any) -> Any:
        if not rest.topics:
            response.topics = []  # Version 0 describes all topics if none is named.
        _fill_operations(response, request, access)
        response.topics = [*response.topics, *refusals]
        return response

    return change_response(handle(rest), add)


def _is_malformed(topic: Any, version: int) -> bool:
    has_id = topic.topic_id != ZERO_UUID
    return (topic.name is None or has_id) if version < 12 else (topic.name is None and not has_id)


def _name_described(item: Any, access: Access) -> str | None:
    if item.topic_id == ZERO_UUID:
        name: str = item.name
        return name
    topic = access.image.topics_by_id.get(item.topic_id)
    return None if topic is None else topic.name


def _find_uncreatable(request: Any, access: Access, refused: list[Any]) -> list[Any]:
    """Return the requested topics that do not exist, and that the client may describe but not create."""
    if not request.allow_auto_topic_creation or not access.services.config.bool("auto.create.topics.enable"):
        return []
    known = access.image.topics
    gone = set(map(id, refused))
    missing = [
        item
        for item in request.topics
        if item.topic_id == ZERO_UUID and item.name not in known and id(item) not in gone
    ]
    if not missing or access.may_on_cluster(AclOperation.CREATE, is_noted=False):
        return []
    allowed = access.select(AclOperation.CREATE, TOPIC, (item.name for item in missing))
    return [item for item in missing if item.name not in allowed]


def _show_described(response: Any, request: Any, access: Access) -> Any:
    names = (topic.name for topic in response.topics)
    described = access.select(AclOperation.DESCRIBE, TOPIC, names, is_noted=False)
    response.topics = [topic for topic in response.topics if topic.name in described]
    return _fill_operations(response, request, access)


def _fill_operations(response: Any, request: Any, access: Access) -> Any:
    if request.include_topic_authorized_operations:
        for topic in response.topics:
            if topic.name is not None:
                topic.topic_authorized_operations = access.list_operations(TOPIC, topic.name)
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = list_cluster_operations(access)
    return response


def list_cluster_operations(access: Access) -> int:
    """Return what a client may do with the cluster; none if it may not describe that."""
    if not access.may_on_cluster(AclOperation.DESCRIBE):
        return 0
    return access.list_operations(AclResourceType.CLUSTER)


def guard_described_cluster(request: Any, access: Access, handle: Handle) -> Any:
    """Show what the client may do with the cluster (DescribeCluster)."""

    def fill(response: Any) -> Any:
        if request.include_cluster_authorized_operations and not response.error_code:
            response.cluster_authorized_operations = list_cluster_operations(access)
        return response

    return change_response(handle(request), fill)


def guard_topic_pages(request: Any, access: Access, handle: Handle) -> Any:
    """Describe, page by page, the topics that a client may describe (DescribeTopicPartitions)."""
    topic_class, named_class = find_struct(request, "topics"), type(request).FIELDS["topics"].element.struct
    cursor = request.cursor
    names = [topic.name for topic in request.topics]
    if cursor is not None and (cursor.partition_index < 0 or (names and cursor.topic_name not in names)):
        return handle(request)
    first = "" if cursor is None else cursor.topic_name
    candidates = [name for name in (names or access.image.topics) if name >= first]
    described = access.select(AclOperation.DESCRIBE, TOPIC, candidates)
    refusals = [
        topic_class(error_code=DESCRIBE_TOPIC.error, name=name)
        for name in dict.fromkeys(names and candidates)
        if name not in described
    ]
    if not described:
        return make_response(request, topics=refusals)
    rest = copy(request)
    rest.topics = [named_class(name=name) for name in dict.fromkeys(candidates) if name in described]
    if first not in described:
        rest.cursor = None

    def add(answer: Any) -> Any:
        for topic in answer.topics:
            topic.topic_authorized_operations = access.list_operations(TOPIC, topic.name)
        answer.topics.extend(refusals)
        return answer

    return change_response(handle(rest), add)
