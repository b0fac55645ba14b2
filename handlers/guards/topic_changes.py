"""Guards of the creation and the deletion of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafkacompat.handlers.guards.access import Access, Handle, change_response
from kafkacompat.handlers.guards.items import answer_rest, find_refused, leave_out, name_field
from kafkacompat.handlers.guards.refusals import MESSAGES, Items, find_struct, make_response
from kafkacompat.handlers.guards.rights import CREATE_TOPIC, DELETE_TOPIC
from kafkacompat.security.acls.model import AclOperation, AclResourceType
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.primitives import ZERO_UUID

if TYPE_CHECKING:
    from kafkacompat.metadata.image import MetadataImage

_CREATED = Items(("topics",), ("topics",))


def guard_new_topics(request: Any, access: Access, handle: Handle) -> Any:
    """Let a client create topics; their configs are shown to those who may describe these."""
    refused: list[Any] = []
    if not access.may_on_cluster(AclOperation.CREATE, is_noted=False):
        refused = find_refused(request, _CREATED, CREATE_TOPIC, name_field("name"), access)
    names = [topic.name for topic in request.topics]
    shown = access.select(AclOperation.DESCRIBE_CONFIGS, AclResourceType.TOPIC, names, is_noted=False)

    def hide_configs(response: Any) -> Any:
        for topic in response.topics:
            if not topic.error_code and topic.name not in shown:
                topic.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                topic.num_partitions = topic.replication_factor = -1
                topic.configs = []
        return response

    return change_response(answer_rest(request, _CREATED, handle, refused, CREATE_TOPIC.error), hide_configs)


def guard_topic_deletion(request: Any, access: Access, handle: Handle) -> Any:
    """Let a client delete topics. Whether a topic exists, and the name of an id, is for those who may describe it."""
    if access.may_on_cluster(AclOperation.DELETE, is_noted=False):
        return handle(request)
    wanted = [(topic.name, topic.topic_id, topic) for topic in request.topics]
    wanted += [(name, ZERO_UUID, name) for name in request.topic_names]
    image = access.services.controller.committed
    names = [_find_name(name, topic_id, image) for name, topic_id, _ in wanted]
    described = access.select(AclOperation.DESCRIBE, AclResourceType.TOPIC, filter(None, names))
    deletable = access.select(AclOperation.DELETE, AclResourceType.TOPIC, filter(None, names))
    result = find_struct(request, "responses")
    refusals: list[Any] = []
    refused: list[Any] = []
    for (given, topic_id, item), name in zip(wanted, names, strict=True):
        by_id = topic_id != ZERO_UUID
        is_allowed = name in deletable and (by_id or name in described)
        if name is None or is_allowed or (name in described and name not in image.topics):
            continue
        shown = given if not by_id else name if name in described else None
        refused.append(item)
        refusals.append(
            result(
                name=shown,
                topic_id=topic_id,
                error_code=DELETE_TOPIC.error,
                error_message=MESSAGES[DELETE_TOPIC.error],
            )
        )
    if not refused:
        return handle(request)
    rest = request
    for field in ("topics", "topic_names"):
        if getattr(rest, field):
            rest = leave_out(rest, field, refused)
    if not rest.topics and not rest.topic_names:
        return make_response(request, responses=refusals)

    def add(response: Any) -> Any:
        response.responses.extend(refusals)
        return response

    return change_response(handle(rest), add)


def _find_name(name: str | None, topic_id: bytes, image: MetadataImage) -> str | None:
    """Return the name of a topic to delete; None if the handler rejects it, because it is not given once, or unknown."""
    if name is not None:
        return name if topic_id == ZERO_UUID else None
    topic = image.topics_by_id.get(topic_id)
    return None if topic is None else topic.name
