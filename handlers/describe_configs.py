"""DescribeConfigs (key 32), v0-4: the configuration of topics, brokers, groups, client metrics and loggers.

v0     reports only whether a value is the default, not its source
v1     synonyms on request
v3     types, and documentation on request
v4     flexible

If a resource is named several times, the last one counts: a broker's answer takes 40,000 bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from kafkacompat.config.instances import LONG_NAME_CONFIG
from kafkacompat.config.resources import ResourceType, is_node_id
from kafkacompat.config.sources import ConfigSource
from kafkacompat.handlers.config_entries import ConfigEntries
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

Describe: TypeAlias = Callable[[str, Services, ConfigEntries], list[DescribeConfigsResourceResult]]


def handle_describe_configs(
    request: DescribeConfigsRequest, context: RequestContext, services: Services
) -> DescribeConfigsResponse:
    """Describe every resource, or return its error."""
    entries = ConfigEntries(services.config, services.effective.config, services.metadata.image)
    resources = {(resource.resource_type, resource.resource_name): resource for resource in request.resources}
    return DescribeConfigsResponse(
        results=[_describe_resource(resource, request, context, services, entries) for resource in resources.values()]
    )


def _describe_resource(
    resource: DescribeConfigsResource,
    request: DescribeConfigsRequest,
    context: RequestContext,
    services: Services,
    entries: ConfigEntries,
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
    try:
        describe = _find_description(resource.resource_type, context)
        if describe is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"resources of type {resource.resource_type} are not known")
        described = describe(resource.resource_name, services, entries)
        if context.tenant is not None:
            described = [entry for entry in described if entry.name != LONG_NAME_CONFIG]
        result.configs = _select_entries(resource, request, described)
    except KafkaError as problem:
        result.error_code, result.error_message = problem.code, problem.detail
    return result


def _find_description(kind: int, context: RequestContext) -> Describe | None:
    if context.tenant is None:
        return _DESCRIBE.get(kind)
    # A broker without instances does not pay for them.
    from kafkacompat.handlers.tenants.configs import DESCRIBED_TYPES, describe_broker

    if kind == ResourceType.BROKER:
        instance = context.tenant.instance

        def describe(name: str, services: Services, entries: ConfigEntries) -> list[DescribeConfigsResourceResult]:
            _check_broker(name, services)
            return describe_broker(name, entries, instance, services.effective.config)

        return describe
    return _DESCRIBE[kind] if kind in DESCRIBED_TYPES else None


def _select_entries(
    resource: DescribeConfigsResource,
    request: DescribeConfigsRequest,
    entries: list[DescribeConfigsResourceResult],
) -> list[DescribeConfigsResourceResult]:
    """Return the requested entries, with only the requested parts of each."""
    wanted = set(resource.configuration_keys or ())
    selected = [entry for entry in entries if not wanted or entry.name in wanted]
    for entry in selected:
        entry.is_default = entry.config_source == ConfigSource.DEFAULT_CONFIG
        if not request.include_synonyms:
            entry.synonyms = []
        if entry.documentation and not request.include_documentation:
            entry.documentation = None
    return selected


def _describe_topic(name: str, services: Services, entries: ConfigEntries) -> list[DescribeConfigsResourceResult]:
    check_topic_name(name)
    if name not in services.metadata.image.topics:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic '{name}'")
    defaults = services.effective.find_topic_defaults(name)
    return entries.describe_topic(services.metadata.image.config(ResourceType.TOPIC, name), defaults)


def _describe_broker(name: str, services: Services, entries: ConfigEntries) -> list[DescribeConfigsResourceResult]:
    _check_broker(name, services)
    return entries.describe_broker() if name else entries.describe_all_brokers()


def _check_broker(name: str, services: Services) -> None:
    """Raise KafkaError INVALID_REQUEST unless *name* is this broker's id, or empty for all brokers."""
    if name and not is_node_id(name, services.node_id):
        reason = f"'{name}' is not the id of this broker, {services.node_id}, and not empty"
        raise KafkaError(ErrorCode.INVALID_REQUEST, reason)


def _describe_loggers(name: str, services: Services, entries: ConfigEntries) -> list[DescribeConfigsResourceResult]:
    return describe_levels(name, services.node_id)


def _describe_group(name: str, services: Services, entries: ConfigEntries) -> list[DescribeConfigsResourceResult]:
    _check_has_name(name, "group")
    return entries.describe_group(services.metadata.image.config(ResourceType.GROUP, name))


def _describe_client_metrics(
    name: str, services: Services, entries: ConfigEntries
) -> list[DescribeConfigsResourceResult]:
    _check_has_name(name, "client metrics subscription")
    return entries.describe_client_metrics(services.metadata.image.config(ResourceType.CLIENT_METRICS, name))


def _describe_instance(name: str, services: Services, entries: ConfigEntries) -> list[DescribeConfigsResourceResult]:
    given = services.metadata.image.config(ResourceType.INSTANCE, name)
    if not given:
        raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, f"there is no instance '{name}'")
    return entries.describe_instance(given)


def _check_has_name(name: str, kind: str) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"a {kind} needs a name")


_DESCRIBE: dict[int, Describe] = {
    ResourceType.TOPIC: _describe_topic,
    ResourceType.BROKER: _describe_broker,
    ResourceType.BROKER_LOGGER: _describe_loggers,
    ResourceType.GROUP: _describe_group,
    ResourceType.CLIENT_METRICS: _describe_client_metrics,
    ResourceType.INSTANCE: _describe_instance,
}
