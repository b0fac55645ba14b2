"""IncrementalAlterConfigs (key 44), v0-1: change single configs of topics, brokers, groups and client metrics.

v1     flexible

A resource is changed as a whole or not at all, whatever becomes of the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kafkacompat.config.resources import ResourceType
from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.ordering import in_order
from kafkacompat.metadata.config_changes import ConfigOperation, Operation
from kafkacompat.wire.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError

_TYPES = (ResourceType.TOPIC, ResourceType.BROKER, ResourceType.GROUP, ResourceType.CLIENT_METRICS)


def handle_incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, context: RequestContext, services: Services
) -> Pending[IncrementalAlterConfigsResponse]:
    """Change every resource that is well described."""
    return in_order(_alter(request, services))


async def _alter(request: IncrementalAlterConfigsRequest, services: Services) -> IncrementalAlterConfigsResponse:
    response = IncrementalAlterConfigsResponse(responses=[_response(resource) for resource in request.resources])
    times = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)
    wanted, places = [], []
    for resource, place in zip(request.resources, response.responses, strict=True):
        try:
            if times[resource.resource_type, resource.resource_name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            wanted.append((_type(resource), resource.resource_name, _operations(resource)))
            places.append(place)
        except KafkaError as problem:
            _fill(place, problem)
    results: Sequence[KafkaError | None]
    try:
        results = await services.controller.alter_configs(wanted, validate_only=request.validate_only)
    except KafkaError as problem:
        results = [problem] * len(wanted)
    for place, outcome in zip(places, results, strict=True):
        _fill(place, outcome)
    return response


def _response(resource: AlterConfigsResource) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_message=None, resource_type=resource.resource_type, resource_name=resource.resource_name
    )


def _fill(response: AlterConfigsResourceResponse, problem: KafkaError | None) -> None:
    if problem is not None:
        response.error_code, response.error_message = problem.code, problem.detail


def _type(resource: AlterConfigsResource) -> ResourceType:
    if resource.resource_type not in _TYPES:
        reason = f"resources of type {resource.resource_type} cannot be changed"
        raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
    return ResourceType(resource.resource_type)


def _operations(resource: AlterConfigsResource) -> list[ConfigOperation]:
    names = [config.name for config in resource.configs]
    if len(set(names)) < len(names):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a config is named twice")
    return [ConfigOperation(config.name, _operation(config), config.value) for config in resource.configs]


def _operation(config: AlterableConfig) -> Operation:
    if config.config_operation not in set(Operation):
        reason = f"operation {config.config_operation} on {config.name} is not known"
        raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
    return Operation(config.config_operation)
