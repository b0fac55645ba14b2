"""ListConfigResources (key 74), v0-1: the resources that may have a configuration.

v0     client metrics subscriptions only (then called ListClientMetricsResources)
v1     resources of the requested types, or of all
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from kafkacompat.config.resources import ResourceType
from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.wire.apis.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from kafkacompat.wire.errors import ErrorCode


def handle_list_config_resources(
    request: ListConfigResourcesRequest, context: RequestContext, services: Services
) -> ListConfigResourcesResponse:
    """List topics and brokers, and the groups, subscriptions and instances that have a config."""
    allowed = _list_types(context) if context.api_version > 0 else {ResourceType.CLIENT_METRICS}
    wanted = set(request.resource_types) or allowed
    if not wanted <= allowed:
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in sorted(wanted)
            for name in sorted(_list_names(ResourceType(kind), context, services))
        ]
    )


def _list_types(context: RequestContext) -> AbstractSet[int]:
    if context.tenant is None:
        return set(ResourceType)
    # A broker without instances does not pay for them.
    from kafkacompat.handlers.tenants.configs import LISTED_TYPES

    return LISTED_TYPES


def _list_names(kind: ResourceType, context: RequestContext, services: Services) -> Iterable[str]:
    image, tenant = services.metadata.image, context.tenant
    if tenant is not None:
        from kafkacompat.handlers.tenants.configs import list_resources

        return list_resources(kind, tenant, context, services)
    if kind == ResourceType.TOPIC:
        return image.topics
    if kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        return map(str, image.brokers)
    return (name for of, name in image.configs if of == kind)
