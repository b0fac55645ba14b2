"""AlterConfigs (key 33), v0-2: replace a resource's whole configuration, as clients did before Kafka 2.3.

v2     flexible

A config that the request does not name goes back to its default. Loggers cannot be changed this way.
"""

from __future__ import annotations

from kafkacompat.config.resources import ResourceType
from kafkacompat.handlers.config_alteration import alter_resources, check_keys, check_stored_type
from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.metadata.config_changes import ConfigOperation, ConfigOperationType, ResourceChange
from kafkacompat.wire.apis.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError


def handle_alter_configs(
    request: AlterConfigsRequest, context: RequestContext, services: Services
) -> Pending[AlterConfigsResponse]:
    """Replace the configuration of every valid resource."""
    return answer_in_order(_alter_configs(request, context, services))


async def _alter_configs(
    request: AlterConfigsRequest, context: RequestContext, services: Services
) -> AlterConfigsResponse:
    def plan(resource: AlterConfigsResource) -> ResourceChange:
        return _plan_replacement(resource, context, services)

    results = await alter_resources(
        request.resources, plan, AlterConfigsResourceResponse, services, validate_only=request.validate_only
    )
    return AlterConfigsResponse(responses=results)


def _plan_replacement(resource: AlterConfigsResource, context: RequestContext, services: Services) -> ResourceChange:
    if resource.resource_type == ResourceType.BROKER_LOGGER:
        reason = "AlterConfigs cannot change logger levels; use IncrementalAlterConfigs"
        raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
    configs = resource.configs
    check_keys([config.name for config in configs], (config.name for config in configs if config.value is None))
    operations = [ConfigOperation(config.name, ConfigOperationType.SET, config.value) for config in configs]
    return ResourceChange(
        check_stored_type(resource, context, services), resource.resource_name, operations, replace=True
    )
