"""What single APIs need for instances besides the translation of names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafkacompat.wire.apis.metadata import MetadataRequestTopic
from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkacompat.handlers.context import RequestContext, Services


def narrow_metadata(request: Any, context: RequestContext, services: Services) -> None:
    """Turn a request for all topics into one for the instance's topics."""
    if request.topics is None or (context.api_version == 0 and not request.topics):
        assert context.tenant is not None
        names = services.instances.list_topics(context.tenant)
        request.topics = [MetadataRequestTopic(name=name) for name in names]
        request.allow_auto_topic_creation = False


def require_group(request: Any, context: RequestContext, services: Services) -> None:
    """Raise INVALID_GROUP_ID for an empty group id: its physical name would not be empty."""
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
