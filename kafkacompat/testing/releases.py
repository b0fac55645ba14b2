"""Listeners of test brokers that look like those of other releases of Apache Kafka, see docs/EMULATE.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kafkacompat.config import BrokerConfig, ConfigError
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.config_changes import ConfigOperationType
from kafkacompat.testing.errors import BrokerError
from kafkacompat.wire.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkacompat.wire.errors import describe_code
from kafkacompat.wire.releases import RELEASES

if TYPE_CHECKING:
    from kafkacompat.testing.node import Node
    from kafkacompat.testing.nodes import Nodes

PROTOCOLS = "listener.security.protocol.map"


def find_release_name(text: str) -> str:
    """Return the entry of RELEASES for a release ("2.8"), one of its patches ("2.8.2"), or the first part of its name ("0.11").

    The first part of several names means the newest of them: "0.10" is 0.10.2. Raises BrokerError.
    """
    if text in RELEASES:
        return text
    patched = [name for name in RELEASES if text.startswith(f"{name}.")]
    begun = [name for name in RELEASES if name.startswith(f"{text}.")]
    if not patched and not begun:
        raise BrokerError(f"release {text!r} of Kafka is not known: name one of {', '.join(RELEASES)}")
    return (patched or begun)[-1]


def build_listener_name(release: str) -> str:
    """Return the name of the listener that looks like *release*, an entry of RELEASES."""
    return f"RELEASE_{release.replace('.', '_')}"


def add_release_listeners(properties: Mapping[str, str], releases: Iterable[str]) -> dict[str, str]:
    """Return a broker's properties with one more listener for each of *releases*, on a free port.

    Each has the host, the protocol and the settings of the broker's first listener. Raises BrokerError for an unknown release, and
    for properties that are not valid.
    """
    if isinstance(releases, str):
        raise BrokerError(f"releases={releases!r} is one name: give a list of names, [{releases!r}]")
    try:
        return _add_listeners(properties, [find_release_name(name) for name in releases])
    except ConfigError as problem:
        raise BrokerError(f"the broker cannot start: {problem}") from None


def _add_listeners(properties: Mapping[str, str], releases: Iterable[str]) -> dict[str, str]:
    added = dict(properties)
    for release in dict.fromkeys(releases):
        config = BrokerConfig(added)
        first = config.listeners[0]
        name = build_listener_name(release)
        if name in {listener.name for listener in config.listeners}:
            continue
        added["listeners"] = f"{added['listeners']},{first._replace(name=name, port=0).entry}"
        added[PROTOCOLS] = f"{config.string(PROTOCOLS)},{name}:{first.protocol}"
        added[f"kafkacompat.listener.name.{name.lower()}.emulate"] = release
        own = f"listener.name.{first.name.lower()}."
        for key, value in properties.items():
            if key.startswith(own):
                added[f"listener.name.{name.lower()}.{key.removeprefix(own)}"] = value
    return added


async def find_release_servers(nodes: Nodes, text: str) -> str:
    """Return the addresses of the listeners that look like a release, one of each broker that runs.

    A single broker binds such a listener if it has none yet. Raises BrokerError for an unknown release, and for a cluster that was
    started without the release: its brokers have announced their listeners.
    """
    release = find_release_name(text)
    name = build_listener_name(release)
    running = nodes.running
    for node in running:
        if name not in node.broker.listeners.bound:
            if len(nodes.by_id) > 1:
                raise BrokerError(f"no broker looks like Kafka {release}: start the cluster with releases=[{text!r}]")
            await _bind(node, release)
    return ",".join(node.find_address(name) for node in running)


async def _bind(node: Node, release: str) -> None:
    """Bind a listener by a change of the broker's properties, and fix its port for later starts."""
    given = node.broker.effective.config.given
    added = add_release_listeners(given, [release])
    await _change(node, {name: value for name, value in added.items() if given.get(name) != value})
    name = build_listener_name(release)
    if name not in node.broker.listeners.bound:
        raise BrokerError(f"the listener that looks like Kafka {release} cannot be bound: see the broker's log")
    config = node.broker.effective.config
    fixed = config.with_ports({name: node.broker.listeners.bound[name][1]})
    await _change(node, {"listeners": fixed.given["listeners"]})


async def _change(node: Node, changes: Mapping[str, str]) -> None:
    configs = [
        AlterableConfig(name=name, config_operation=ConfigOperationType.SET, value=value)
        for name, value in changes.items()
    ]
    resource = AlterConfigsResource(resource_type=ResourceType.BROKER, resource_name=str(node.node_id), configs=configs)
    (result,) = (await node.request(IncrementalAlterConfigsRequest(resources=[resource]))).responses
    if result.error_code:
        raise BrokerError(f"the listener cannot be added: {describe_code(result.error_code, result.error_message)}")
