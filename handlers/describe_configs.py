"""DescribeConfigs (key 32), v0-4: the configuration of topics, brokers, groups, client metrics and loggers.

v0     of where a value comes from only whether it is the default
v1     synonyms on request
v3     types, and documentation on request
v4     flexible

Of a resource named several times the last one counts: a broker's answer is 40,000 bytes.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkacompat.config.resources import ResourceType, is_node
from kafkacompat.handlers.config_entries import ConfigEntries, Source
from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.handlers.logger_levels import describe_levels
from kafkacompat.metadata.topic_names import check_topic_name
from kafkacompat.wire.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError


def handle_describe_configs(
    request: DescribeConfigsRequest, context: RequestContext, services: Services
) -> DescribeConfigsResponse:
    """Describe every resource, or say why it cannot be."""
    entries = ConfigEntries(services.config, services.controller.config, services.metadata.image)
    resources = {(resource.resource_type, resource.resource_name): resource for resource in request.resources}
    return DescribeConfigsResponse(
        results=[_result(resource, request, services, entries) for resource in resources.values()]
    )


def _result(
    resource: DescribeConfigsResource, request: DescribeConfigsRequest, services: Services, entries: ConfigEntries
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
    try:
        describe = _DESCRIBE.get(resource.resource_type)
        if describe is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"resources of type {resource.resource_type} are not known")
        result.configs = _selected(resource, request, describe(resource.resource_name, services, entries))
    except KafkaError as problem:
        result.error_code, result.error_message = problem.code, problem.detail
    return result


def _selected(
    resource: DescribeConfigsResource,
    request: DescribeConfigsRequest,
    entries: list[DescribeConfigsResourceResult],
) -> list[DescribeConfigsResourceResult]:
    """The entries asked for, with no more than what was asked for of each."""
    wanted = set(resource.configuration_keys or ())
    selected = [entry for entry in entries if not wanted or entry.name in wanted]
    for entry in selected:
        entry.is_default = entry.config_source == Source.DEFAULT
        if not request.include_synonyms:
            entry.synonyms = []
        if entry.documentation and not request.include_documentation:
            entry.documentation = None
    return selected


def _topic(name: str, services: Services, entries: ConfigEntries) -> list[DescribeConfigsResourceResult]:
    check_topic_name(name)
    if name not in services.metadata.image.topics:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic '{name}'")
    return entries.topic(services.metadata.image.config(ResourceType.TOPIC, name))


def _broker(name: str, services: Services, entries: ConfigEntries) -> list[DescribeConfigsResourceResult]:
    if not name:
        return entries.all_brokers()
    if not is_node(name, services.node_id):
        reason = f"'{name}' is not the id of this broker, {services.node_id}, and not empty"
        raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
    return entries.broker()


def _loggers(name: str, services: Services, entries: ConfigEntries) -> list[DescribeConfigsResourceResult]:
    return describe_levels(name, services.node_id)


def _group(name: str, services: Services, entries: ConfigEntries) -> list[DescribeConfigsResourceResult]:
    _check_named(name, "group")
    return entries.group(services.metadata.image.config(ResourceType.GROUP, name))


def _client_metrics(name: str, services: Services, entries: ConfigEntries) -> list[DescribeConfigsResourceResult]:
    _check_named(name, "client metrics subscription")
    return entries.client_metrics(services.metadata.image.config(ResourceType.CLIENT_METRICS, name))


def _check_named(name: str, what: str) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"a {what} needs a name")


_DESCRIBE: dict[int, Callable[[str, Services, ConfigEntries], list[DescribeConfigsResourceResult]]] = {
    ResourceType.TOPIC: _topic,
    ResourceType.BROKER: _broker,
    ResourceType.BROKER_LOGGER: _loggers,
    ResourceType.GROUP: _group,
    ResourceType.CLIENT_METRICS: _client_metrics,
}
