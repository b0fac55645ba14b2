"""AlterConfigs (key 33), v0-2: put one configuration in the place of another, as clients did before Kafka 2.3.

v2     flexible

Everything that was set for a resource and is not named is gone. Loggers cannot be changed this way.
"""

from __future__ import annotations

from kafkacompat.config.resources import ResourceType
from kafkacompat.handlers.config_alteration import alter_resources, check_keys, fill, stored_type
from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.ordering import in_order
from kafkacompat.metadata.config_changes import ConfigOperation, Operation, ResourceChange
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
    """Replace the configuration of every resource that is well described."""
    return in_order(_alter(request, services))


async def _alter(request: AlterConfigsRequest, services: Services) -> AlterConfigsResponse:
    outcomes = await alter_resources(request.resources, _plan, services, validate_only=request.validate_only)
    responses = [
        AlterConfigsResourceResponse(resource_type=resource.resource_type, resource_name=resource.resource_name)
        for resource in request.resources
    ]
    fill(responses, outcomes)
    return AlterConfigsResponse(responses=responses)


def _plan(resource: AlterConfigsResource) -> ResourceChange:
    if resource.resource_type == ResourceType.BROKER_LOGGER:
        reason = "AlterConfigs changes no levels of loggers: use IncrementalAlterConfigs"
        raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
    configs = resource.configs
    check_keys([config.name for config in configs], (config.name for config in configs if config.value is None))
    operations = [ConfigOperation(config.name, Operation.SET, config.value) for config in configs]
    return ResourceChange(stored_type(resource), resource.resource_name, operations, replace=True)
