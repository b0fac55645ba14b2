"""Instances of a cluster of brokers, and clients of one of them, whose requests go through the translation of names."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred, succeed

from kafkacompat.config.resources import ResourceType
from kafkacompat.handlers.context import Peer, Pending, RequestContext
from kafkacompat.security.principals import ANONYMOUS, Principal
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest
from kafkacompat.wire.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkacompat.wire.compiler import decode_message, encode_message
from kafkacompat.wire.connection import IncomingRequest
from kafkacompat.wire.schema import Request
from tests.kafkacompat.three_brokers.support import PORT, Cluster

SET = 0
FETCH = 1
GROUPS = "kafkacompat.broker.groups"


def alter(cluster: Cluster, node: int, kind: ResourceType, name: str, **configs: str) -> Any:
    """Set configs of a resource at any broker, with underscores for dots; returns the result."""
    entries = [
        AlterableConfig(name=option.replace("_", "."), config_operation=SET, value=value)
        for option, value in configs.items()
    ]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=entries)
    return cluster.ask(node, IncrementalAlterConfigsRequest(resources=[resource])).responses[0]


def knows(cluster: Cluster, node: int, name: str, **properties: str) -> bool:
    """Return whether a broker knows an instance with these properties."""
    view = cluster.brokers[node].instances.by_name.get(name)
    return view is not None and all(
        view.instance.given.get(option.replace("_", ".")) == value for option, value in properties.items()
    )


def make_instance(cluster: Cluster, name: str, node: int | None = None, **properties: str) -> None:
    """Create or change an instance at a broker, and wait until all brokers know that."""
    given = {"cluster_id": f"id-of-{name}", "secret": f"secret of {name}", **properties}
    result = alter(cluster, node or cluster.controller(), ResourceType.INSTANCE, name, **given)
    assert result.error_code == 0, result.error_message
    cluster.wait(lambda: all(knows(cluster, other, name, **given) for other in cluster.brokers))


def make_groups(cluster: Cluster, groups: str) -> None:
    """Set the groups of brokers, and wait until all brokers know them."""
    result = alter(cluster, cluster.controller(), ResourceType.BROKER, "", **{GROUPS: groups})
    assert result.error_code == 0, result.error_message
    wanted = groups.split(",")
    cluster.wait(lambda: all(broker.effective.config.list(GROUPS) == wanted for broker in cluster.brokers.values()))


def _reread(message: Any, handler: Any, version: int) -> Any:
    return decode_message(handler.response, encode_message(message, version), version)


class TenantClient:
    """A client of one instance: requests and responses go through their form on the wire, but for records that it reads."""

    def __init__(self, cluster: Cluster, instance: str, principal: Principal = ANONYMOUS) -> None:
        self._cluster = cluster
        self._instance = instance
        self._principal = principal

    def send(self, node: int, request: Request, version: int | None = None) -> Deferred[Any]:
        """Send a request to a broker; fires with the response."""
        broker = self._cluster.brokers[node]
        dispatcher: Any = broker.server._dispatcher
        version = dispatcher.handlers[request.API_KEY].versions.last if version is None else version
        body = decode_message(type(request), encode_message(request, version), version)
        incoming = IncomingRequest(request.API_KEY, version, 7, "client", body, 100)
        peer = Peer("PLAINTEXT", "10.0.0.9", 1, f"broker-{node}", PORT)
        tenant = broker.instances.by_name[self._instance]
        context = RequestContext(version, "client", peer, principal=self._principal, tenant=tenant)
        answer = dispatcher.dispatch(incoming, context)
        response: Deferred[Any] = answer.response if isinstance(answer, Pending) else succeed(answer)
        if request.API_KEY != FETCH:
            response.addCallback(lambda message: _reread(message, dispatcher.handlers[request.API_KEY], version))
        return response

    def ask(self, node: int, request: Request, version: int | None = None) -> Any:
        """Send a request to a broker, and wait for the response."""
        return self._cluster.run(self.send(node, request, version))

    def create(self, node: int, name: str, partitions: int = 1, replicas: int = 2) -> Any:
        """Create a topic; returns the result."""
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas)
        return self.ask(node, CreateTopicsRequest(topics=[topic], timeout_ms=20_000)).topics[0]
