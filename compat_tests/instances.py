"""Instances on a running broker: created, altered and removed by requests; and the broker as an instance's clients see it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from random import Random

from compat_tests.brokers import Broker, answers_api_versions
from compat_tests.ports import free_port
from compat_tests.raw_client import RawClient
from compat_tests.waiting import until
from kafkacompat.config.instances import DELETING
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.config_changes import ConfigOperation, ConfigOperationType
from kafkacompat.tenancy.instance_messages import encode_changes
from kafkacompat.wire.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kafkacompat.wire.apis.incremental_alter_configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.primitives import format_uuid, new_uuid

ALTER_VERSION = 1
DESCRIBE_VERSION = 4
REMOVAL_SECONDS = 60
"""A removal waits for the members of groups, whose sessions may have to end."""
LOOPBACK = "127.0.0.1"


def alter_instance(client: RawClient, name: str, properties: Mapping[str, str | None]) -> None:
    """Set properties of an instance, and delete those with None; raises AssertionError if the broker refuses."""
    changes = [
        ConfigOperation(option, ConfigOperationType.DELETE if value is None else ConfigOperationType.SET, value)
        for option, value in properties.items()
    ]
    configs = encode_changes(changes)
    resource = AlterConfigsResource(resource_type=ResourceType.INSTANCE, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    (result,) = client.call(request, IncrementalAlterConfigsResponse, ALTER_VERSION).responses
    assert not result.error_code, f"the instance {name}: {result.error_message}"


def is_gone(client: RawClient, name: str) -> bool:
    """Return whether there is no instance of this name."""
    resource = DescribeConfigsResource(resource_type=ResourceType.INSTANCE, resource_name=name)
    request = DescribeConfigsRequest(resources=[resource])
    (result,) = client.call(request, DescribeConfigsResponse, DESCRIBE_VERSION).results
    return result.error_code == ErrorCode.RESOURCE_NOT_FOUND


def list_properties(name: str, port: int, properties: Mapping[str, str], host: str = LOOPBACK) -> dict[str, str]:
    """Return all properties of a new instance with a listener of its own; its name decides cluster id and secret."""
    rng = Random(name)
    return {
        "cluster.id": format_uuid(new_uuid(rng)),
        "secret": rng.randbytes(32).hex(),
        "listeners": f"PLAINTEXT://{host}:{port}",
        **properties,
    }


@contextmanager
def running_instance(broker: Broker, name: str, properties: Mapping[str, str] | None = None) -> Iterator[Broker]:
    """Have an instance during the block; yields the broker as the instance's clients see it."""
    with running_instances(broker, {name: properties or {}}) as seen:
        yield seen[name]


@contextmanager
def running_instances(broker: Broker, wanted: Mapping[str, Mapping[str, str]]) -> Iterator[dict[str, Broker]]:
    """Have instances with these properties during the block; yields the broker as the clients of each see it, by name.

    After the block the instances are removed, with all that they have.
    """
    ports = {name: free_port() for name in wanted}
    given = {name: list_properties(name, ports[name], properties) for name, properties in wanted.items()}
    with RawClient(broker.port) as client:
        for name, properties in given.items():
            alter_instance(client, name, properties)
        await_listeners(ports.values())
        try:
            yield {name: see_as_client(broker, port) for name, port in ports.items()}
        finally:
            for name in given:
                alter_instance(client, name, {"state": DELETING, "delete.at.ms": "0"})
            for name in given:
                until(lambda name=name: is_gone(client, name), timeout_seconds=REMOVAL_SECONDS)  # type: ignore[misc]


def await_listeners(ports: Iterable[int], host: str = LOOPBACK) -> None:
    """Wait until each port answers."""
    for port in ports:
        until(lambda port=port: answers_api_versions(port, host=host))  # type: ignore[misc]


def see_as_client(broker: Broker, port: int) -> Broker:
    """Return the running broker with another port: that of an instance. It is not started or stopped by this object."""
    seen = copy.copy(broker)
    seen.port = port
    return seen
