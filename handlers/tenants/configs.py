"""Configurations as the clients of an instance see them: their topics and groups, and a few properties of the brokers.

No request of theirs changes a broker. What they may know of one is in `SHOWN_PROPERTIES`; the values are those of their instance.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kafkacompat.config.instances import LONG_NAME_CONFIG, NO_LIMIT
from kafkacompat.config.resources import ResourceType
from kafkacompat.config.sources import ConfigSource
from kafkacompat.config.topic_defaults import TOPIC_CONFIG_SYNONYMS
from kafkacompat.config.topics import WHITELISTS
from kafkacompat.handlers.config_entries import ConfigEntries
from kafkacompat.handlers.endpoints import ClusterSight
from kafkacompat.handlers.guards.refusals import find_struct, make_response
from kafkacompat.handlers.tenants.bounds import bound_group_configs
from kafkacompat.handlers.tenants.whitelist_room import TOO_LONG_WHITELISTS, WhitelistRoom
from kafkacompat.metadata.config_changes import ConfigOperationType
from kafkacompat.metadata.instance_limits import limit_defaults
from kafkacompat.tenancy.names import FOREIGN
from kafkacompat.wire import entities
from kafkacompat.wire.apis.describe_configs import DescribeConfigsResourceResult, DescribeConfigsSynonym
from kafkacompat.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig
    from kafkacompat.config.instances import Instance
    from kafkacompat.handlers.context import RequestContext, Services
    from kafkacompat.tenancy.tenant_view import TenantView
    from kafkacompat.wire.schema import Response

SHOWN_PROPERTIES = frozenset(synonym.name for row in TOPIC_CONFIG_SYNONYMS.values() for synonym in row) | {
    "auto.create.topics.enable",
    "broker.id",
    "connections.max.idle.ms",
    "default.replication.factor",
    "delete.topic.enable",
    "fetch.max.bytes",
    "group.consumer.heartbeat.interval.ms",
    "group.consumer.session.timeout.ms",
    "group.initial.rebalance.delay.ms",
    "group.max.session.timeout.ms",
    "group.max.size",
    "group.min.session.timeout.ms",
    "node.id",
    "num.partitions",
    "offset.metadata.max.bytes",
    "offsets.retention.minutes",
    "producer.id.expiration.ms",
    "socket.request.max.bytes",
    "transaction.max.timeout.ms",
    "transactional.id.expiration.ms",
}
"""Properties of a broker that clients have a use for, and that tell nothing of its machine, its network or its other clients."""

HIDDEN_CONFIGS = frozenset({LONG_NAME_CONFIG, "internal.segment.bytes"})
"""Topic configs that clients cannot set. With tiny segments a tenant would use up the files of all."""
DESCRIBED_TYPES = frozenset({ResourceType.TOPIC, ResourceType.GROUP, ResourceType.BROKER})
"""The resources that the clients of an instance may describe."""
LISTED_TYPES = DESCRIBED_TYPES | {ResourceType.BROKER_LOGGER, ResourceType.CLIENT_METRICS}
"""The types that they may list; there are no resources of the last two."""
STEP_RESOURCES = 64
_HIDDEN_TYPES = frozenset({ResourceType.CLIENT_METRICS, ResourceType.INSTANCE})
_OF_BROKERS = frozenset({ResourceType.BROKER, ResourceType.BROKER_LOGGER})


# Changes


def refuse_foreign_resources(
    request: Any, context: RequestContext, services: Services
) -> Generator[None, None, Response | None]:
    """Leave out the resources that are not an instance's; `add_refused` answers these."""
    kept = []
    request.refused = []
    room = WhitelistRoom()
    for count, resource in enumerate(request.resources, 1):
        refusal = _find_refusal(resource) or _find_long_whitelist(resource, room, context, services)
        if refusal is None:
            kept.append(resource)
        else:
            request.refused.append(_build_refusal(request, resource, *refusal))
        if count % STEP_RESOURCES == 0:
            yield
    request.resources = kept
    if request.refused and not kept:
        response: Response = make_response(request, responses=request.refused)
        return response
    return (yield from bound_group_configs(request, context, services))


def add_refused(request: Any, response: Any, context: RequestContext, services: Services) -> None:
    """Add the answers to the resources that `refuse_foreign_resources` has left out."""
    response.responses.extend(request.refused)


def _find_refusal(resource: Any) -> tuple[ErrorCode, str] | None:
    kind = resource.resource_type
    if kind in _OF_BROKERS:
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "the brokers are not configured by the clients of an instance"
    if kind in _HIDDEN_TYPES:
        return ErrorCode.INVALID_REQUEST, f"resources of type {kind} cannot be changed here"
    hidden = next((config.name for config in resource.configs if config.name in HIDDEN_CONFIGS), None)
    if hidden is not None:
        return ErrorCode.INVALID_CONFIG, f"{hidden} is not a topic config"
    return None


def _find_long_whitelist(
    resource: Any, room: WhitelistRoom, context: RequestContext, services: Services
) -> tuple[ErrorCode, str] | None:
    """Refuse whitelists that take long to read, which may be long already if a request appends to them."""
    for config in resource.configs:
        length = len(config.value or "")
        operation = getattr(config, "config_operation", ConfigOperationType.SET)
        if config.name in WHITELISTS and operation in (ConfigOperationType.APPEND, ConfigOperationType.SUBTRACT):
            assert context.tenant is not None
            topic = context.tenant.names.to_physical[entities.TOPIC][resource.resource_name]
            length += len(services.metadata.image.config(ResourceType.TOPIC, topic).get(config.name, ""))
        if not room.takes(config.name, length):
            return ErrorCode.POLICY_VIOLATION, TOO_LONG_WHITELISTS
    return None


def _build_refusal(request: Any, resource: Any, code: ErrorCode, reason: str) -> Any:
    return find_struct(request, "responses")(
        error_code=code,
        error_message=reason,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


# Descriptions


def describe_broker(
    name: str, entries: ConfigEntries, instance: Instance, config: BrokerConfig
) -> list[DescribeConfigsResourceResult]:
    """Describe what an instance's clients may know of a broker, or of all brokers if *name* is empty."""
    own = _find_own_values(instance, config)
    shown = [_show_own_value(entry, own) for entry in entries.describe_properties(SHOWN_PROPERTIES)]
    return shown if name else [entry for entry in map(_keep_cluster_default, shown) if entry.synonyms]


def _find_own_values(instance: Instance, config: BrokerConfig) -> Mapping[str, str]:
    """Return the brokers' properties that an instance has values of its own for."""
    own = {
        TOPIC_CONFIG_SYNONYMS[name][0].name: text
        for name, text in limit_defaults(config, instance.default_topic_configs, instance.topic_bounds).items()
        if name in TOPIC_CONFIG_SYNONYMS
    }
    for name in ("num.partitions", "default.replication.factor"):
        if instance.int(name) != NO_LIMIT:
            own[name] = str(instance.int(name))
    if not instance.value("auto.create.topics.enable"):
        own["auto.create.topics.enable"] = "false"
    return own


def _show_own_value(entry: DescribeConfigsResourceResult, own: Mapping[str, str]) -> DescribeConfigsResourceResult:
    entry.read_only = True
    if entry.name in own:
        entry.value, entry.config_source = own[entry.name], ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        synonym = DescribeConfigsSynonym(
            name=entry.name, value=entry.value, source=ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        )
        entry.synonyms = [synonym, *entry.synonyms]
    return entry


def _keep_cluster_default(entry: DescribeConfigsResourceResult) -> DescribeConfigsResourceResult:
    """Leave only what is set for all brokers."""
    entry.synonyms = [
        synonym for synonym in entry.synonyms if synonym.source == ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    ]
    if entry.synonyms:
        entry.value, entry.config_source = entry.synonyms[0].value, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    return entry


def list_resources(
    kind: ResourceType, tenant: TenantView, context: RequestContext, services: Services
) -> Iterable[str]:
    """List the resources of one type that an instance has, by their physical names."""
    image = services.metadata.image
    if kind == ResourceType.TOPIC:
        return services.instances.list_topics(tenant)
    if kind == ResourceType.BROKER:
        return map(str, ClusterSight(context, services).reachable)
    to_client = tenant.names.to_client[entities.GROUP]
    is_group = kind == ResourceType.GROUP
    return (name for of, name in image.configs if is_group and of == kind and to_client[name] is not FOREIGN)
