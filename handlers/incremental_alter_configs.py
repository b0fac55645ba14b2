"""IncrementalAlterConfigs (key 44), v0-1: change single configs of topics, brokers, groups, client metrics, loggers.

v1     flexible

Each resource changes as a whole or not at all, independently of the others.
"""

from __future__ import annotations

from kafkacompat.config.resources import ResourceType
from kafkacompat.handlers.config_alteration import alter_resources, check_keys, check_stored_type
from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.logger_levels import change_levels
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.metadata.config_changes import ConfigOperation, ConfigOperationType, ResourceChange
from kafkacompat.wire.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError


def handle_incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, context: RequestContext, services: Services
) -> Pending[IncrementalAlterConfigsResponse]:
    """Change every valid resource."""
    return answer_in_order(_alter_configs(request, context, services))


async def _alter_configs(
    request: IncrementalAlterConfigsRequest, context: RequestContext, services: Services
) -> IncrementalAlterConfigsResponse:
    def plan(resource: AlterConfigsResource) -> ResourceChange | None:
        operations = _parse_operations(resource)
        if resource.resource_type == ResourceType.BROKER_LOGGER:
            change_levels(resource.resource_name, operations, services.node_id, validate_only=request.validate_only)
            return None
        return ResourceChange(check_stored_type(resource, context, services), resource.resource_name, operations)

    results = await alter_resources(
        request.resources, plan, AlterConfigsResourceResponse, services, validate_only=request.validate_only
    )
    return IncrementalAlterConfigsResponse(responses=results)


def _parse_operations(resource: AlterConfigsResource) -> list[ConfigOperation]:
    configs = resource.configs
    missing = (
        config.name
        for config in configs
        if config.value is None and config.config_operation != ConfigOperationType.DELETE
    )
    # A long list of an instance comes in parts, see kafkacompat.tenancy.instance_messages.
    is_in_parts = resource.resource_type == ResourceType.INSTANCE
    check_keys([] if is_in_parts else [config.name for config in configs], missing)
    return [ConfigOperation(config.name, _parse_operation(config), config.value) for config in configs]


def _parse_operation(config: AlterableConfig) -> ConfigOperationType:
    if config.config_operation not in set(ConfigOperationType):
        reason = f"operation {config.config_operation} on {config.name} is not known"
        raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
    return ConfigOperationType(config.config_operation)
