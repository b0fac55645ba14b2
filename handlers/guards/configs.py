"""Guards of requests about configurations, whose resources are topics, groups, and the brokers of the cluster."""

from __future__ import annotations

from typing import Any

from kafkacompat.config.resources import ResourceType
from kafkacompat.handlers.guards.access import Access, Guard, Handle, change_response
from kafkacompat.handlers.guards.items import leave_out
from kafkacompat.handlers.guards.refusals import Items, make_response, refuse_items
from kafkacompat.handlers.guards.rights import AccessCheck
from kafkacompat.security.acls.model import AclOperation, AclResourceType

PROTECTED_AS = {
    ResourceType.TOPIC: AclResourceType.TOPIC,
    ResourceType.GROUP: AclResourceType.GROUP,
    ResourceType.BROKER: AclResourceType.CLUSTER,
    ResourceType.BROKER_LOGGER: AclResourceType.CLUSTER,
    ResourceType.CLIENT_METRICS: AclResourceType.CLUSTER,
    ResourceType.INSTANCE: AclResourceType.CLUSTER,
}
"""By type of a resource with a configuration: the type of the resource that the rights are asked for."""


def guard_configs(operation: AclOperation, answered: str) -> Guard:
    """Let the handler answer the resources that the client has the right on."""
    items = Items(("resources",), (answered,))

    def guard(request: Any, access: Access, handle: Handle) -> Any:
        refused, refusals = [], []
        for resource in request.resources:
            kind = PROTECTED_AS.get(resource.resource_type)
            if kind is not None:
                name = access.cluster_name if kind is AclResourceType.CLUSTER else resource.resource_name
                if not access.may(operation, kind, name):
                    refused.append(resource)
                    refusals += refuse_items(request, items, [resource], AccessCheck(operation, kind).error)
        if not refused:
            return handle(request)
        rest = leave_out(request, "resources", refused)
        if not rest.resources:
            return make_response(request, **{answered: refusals})

        def add(answer: Any) -> Any:
            getattr(answer, answered).extend(refusals)
            return answer

        return change_response(handle(rest), add)

    return guard
