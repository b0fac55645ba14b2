"""Configs of topics, brokers, groups and others: described and changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from kafkacompat.cli.remote.administration.topic_names import explain_topic
from kafkacompat.cli.remote.errors import EXIT_DONE, EXIT_REFUSED, RemoteError, explain_refusal, suggest_name
from kafkacompat.cli.remote.outcomes import Outcome, write_outcomes
from kafkacompat.config.sources import ConfigSource
from kafkacompat.wire.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kafkacompat.wire.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafkacompat.wire.apis.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from kafkacompat.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kafkacompat.cli.remote.cluster import RemoteCluster
    from kafkacompat.cli.remote.output import Output

CLUSTER_DEFAULT = ""
"""The name of the brokers' default."""
_SET, _DELETE = 0, 1
RESOURCES_A_REQUEST = 500


class _Kind(NamedTuple):
    """A kind of entities as kafka-configs calls it, by the number of its resource type."""

    noun: str
    resource_type: int
    is_of_one_broker: bool = False


KINDS = {
    "topics": _Kind("topic", 2),
    "brokers": _Kind("broker", 4, is_of_one_broker=True),
    "broker-loggers": _Kind("broker", 8, is_of_one_broker=True),
    "client-metrics": _Kind("client metrics subscription", 16),
    "groups": _Kind("group", 32),
}


def describe_configs(
    cluster: RemoteCluster, output: Output, entity_type: str, names: Sequence[str] | None, *, shows_all: bool
) -> int:
    """Write the configs of entities, those that are set or all; returns the exit code. *names* None means all entities."""
    described, code = [], EXIT_DONE
    for result in read_configs(cluster, entity_type, _list_names(cluster, entity_type) if names is None else names):
        if result.error_code:
            code = EXIT_REFUSED
            reason = _explain(cluster, entity_type, result.resource_name, result.error_code, result.error_message)
            output.complain(f"the configs of {_name_entity(entity_type, result.resource_name)} are not shown: {reason}")
            continue
        rows = [_describe(entry) for entry in select_configs(entity_type, result.configs, shows_all=shows_all)]
        described.append({"type": entity_type, "name": result.resource_name, "configs": rows})
        if not output.as_json:
            title = f"Configs of {_name_entity(entity_type, result.resource_name)}"
            output.write_rows(rows, f"{title}: none is set, and --all shows the defaults", title)
    if output.as_json:
        output.write_json(described)
    return code


def read_configs(cluster: RemoteCluster, entity_type: str, names: Sequence[str]) -> Iterator[DescribeConfigsResult]:
    """Yield the configs of entities; those of a broker come from itself."""
    kind = KINDS[entity_type]
    if kind.is_of_one_broker:
        for name in names:
            request = _build_request(kind, [name])
            yield from _send_to_broker(cluster, name, request).results
        return
    for start in range(0, len(names), RESOURCES_A_REQUEST):
        request = _build_request(kind, names[start : start + RESOURCES_A_REQUEST])
        yield from cluster.request(request, DescribeConfigsResponse).results


def _list_names(cluster: RemoteCluster, entity_type: str) -> list[str]:
    """Return all entities of a type that can have configs; raises RemoteError."""
    kind = KINDS[entity_type]
    if kind.is_of_one_broker:
        return [str(broker.node_id) for broker in cluster.brokers.brokers]
    if entity_type == "topics":
        return [topic.name or "" for topic in cluster.read_topics()]
    request = ListConfigResourcesRequest(resource_types=[kind.resource_type])
    response = cluster.request(request, ListConfigResourcesResponse)
    if response.error_code:
        raise RemoteError(f"the {kind.noun}s are not listed: {explain_refusal(response.error_code)}")
    # Version 0 lists client metrics, whatever type the request names.
    return sorted(
        resource.resource_name for resource in response.config_resources if resource.resource_type == kind.resource_type
    )


def _build_request(kind: _Kind, names: Iterable[str]) -> DescribeConfigsRequest:
    resources = [
        DescribeConfigsResource(resource_type=kind.resource_type, resource_name=name, configuration_keys=None)
        for name in names
    ]
    return DescribeConfigsRequest(resources=resources)


def _send_to_broker(cluster: RemoteCluster, name: str, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    if name == CLUSTER_DEFAULT:
        return cluster.request(request, DescribeConfigsResponse)
    return cluster.request_broker(parse_broker(name), request, DescribeConfigsResponse)


def parse_broker(name: str) -> int:
    """Return a broker's id; raises click.UsageError."""
    if not name.isdecimal() or len(name) > 10:
        raise click.UsageError(f"{name} is no id of a broker: `kafkacompat brokers` lists them")
    return int(name)


def select_configs(
    entity_type: str, configs: Iterable[DescribeConfigsResourceResult], *, shows_all: bool
) -> list[DescribeConfigsResourceResult]:
    """Return all configs, or those that are set: for a topic on itself, for a broker anywhere."""
    if shows_all:
        return sorted(configs, key=lambda entry: entry.name)
    if entity_type == "topics":
        chosen = (entry for entry in configs if entry.config_source == ConfigSource.DYNAMIC_TOPIC_CONFIG)
    else:
        chosen = (entry for entry in configs if entry.config_source != ConfigSource.DEFAULT_CONFIG)
    return sorted(chosen, key=lambda entry: entry.name)


def _describe(entry: DescribeConfigsResourceResult) -> dict[str, object]:
    return {
        "config": entry.name,
        "value": entry.value,
        "source": _name_source(entry.config_source),
        "is_sensitive": entry.is_sensitive,
        "is_read_only": entry.read_only,
    }


def _name_source(code: int) -> str:
    try:
        return ConfigSource(code).name
    except ValueError:
        return ConfigSource.UNKNOWN.name


def _name_entity(entity_type: str, name: str) -> str:
    if name == CLUSTER_DEFAULT and entity_type == "brokers":
        return "all brokers"
    return f"{KINDS[entity_type].noun} {name}"


def _explain(cluster: RemoteCluster, entity_type: str, name: str, code: int, message: str | None) -> str:
    if entity_type == "topics" and code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return explain_topic(cluster, name, code, message)
    return explain_refusal(code, message)


def alter_configs(
    cluster: RemoteCluster, output: Output, entity_type: str, names: Sequence[str], changes: Mapping[str, str | None]
) -> int:
    """Set the configs in *changes*, and reset those with None; returns the exit code."""
    outcomes = [alter_entity(cluster, entity_type, name, changes) for name in names]
    return write_outcomes(output, KINDS[entity_type].noun, "altered", outcomes)


def alter_entity(cluster: RemoteCluster, entity_type: str, name: str, changes: Mapping[str, str | None]) -> Outcome:
    """Change the configs of one entity."""
    kind = KINDS[entity_type]
    deleted = [config for config, value in changes.items() if value is None]
    if deleted and (problem := _find_unknown_config(cluster, entity_type, name, deleted)) is not None:
        return Outcome(name or "default", problem)
    configs = [
        AlterableConfig(name=config, config_operation=_DELETE if value is None else _SET, value=value)
        for config, value in changes.items()
    ]
    resource = AlterConfigsResource(resource_type=kind.resource_type, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    if kind.is_of_one_broker and name != CLUSTER_DEFAULT:
        response = cluster.request_broker(parse_broker(name), request, IncrementalAlterConfigsResponse)
    else:
        response = cluster.request_controller(request, IncrementalAlterConfigsResponse)
    (result,) = response.responses
    if result.error_code:
        return Outcome(name or "default", _explain(cluster, entity_type, name, result.error_code, result.error_message))
    return Outcome(name or "default")


def _find_unknown_config(cluster: RemoteCluster, entity_type: str, name: str, deleted: Iterable[str]) -> str | None:
    """Return why configs cannot be reset, or None. Brokers confirm the reset of a config that does not exist."""
    (described,) = read_configs(cluster, entity_type, [name])
    if described.error_code:
        return _explain(cluster, entity_type, name, described.error_code, described.error_message)
    known = [entry.name for entry in described.configs]
    for config in deleted:
        if config not in known:
            return f"it has no config {config}{suggest_name(config, known)}"
    return None
