"""`broker` and `cluster`. Importing this module loads no broker: plugins of pytest are imported by every run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from kafkacompat.adjustable_reactor import AdjustableReactor
    from kafkacompat.faults import Faults
    from kafkacompat.host import Host
    from kafkacompat.testing.acls import Acl
    from kafkacompat.testing.node import Node
    from kafkacompat.testing.process_reactor import ProcessReactor
    from kafkacompat.testing.running import RunningBroker, RunningCluster
    from kafkacompat.zookeeper.memory import MemoryZooKeeper

Instances: TypeAlias = "Iterable[str] | Mapping[str, Mapping[str, Any]]"

MOST_BROKERS = 100


def broker(
    folder: str | os.PathLike[str] | None = None,
    *,
    tls: bool = False,
    users: Mapping[str, str] | None = None,
    acls: Sequence[Acl] | None = None,
    instances: Instances = (),
    releases: Iterable[str] = (),
    **properties: Any,
) -> RunningBroker:
    """Start a broker in this process and return it; leaving its ``with`` block stops it.

    The data are in memory, or in *folder*, where a later broker finds them. With *tls* clients need TLS, by a certificate that is made
    for it; *users* are passwords by name, for PLAIN and SCRAM. With *acls* clients may do what these rules allow, and nothing else.
    *instances* are names of instances, or their properties by name. For each of *releases* the broker has a listener that looks like
    this release of Kafka, see `RunningBroker.release`. *properties* are those of Kafka's brokers, with ``_`` for ``.``.

    Raises BrokerError, one sentence, if the broker cannot start.
    """
    from kafkacompat.adjustable_reactor import AdjustableReactor
    from kafkacompat.faults import Faults
    from kafkacompat.testing.arguments import check_arguments
    from kafkacompat.testing.profile import (
        add_own_properties,
        build_properties,
        check_free,
        read_instances,
        read_properties,
    )
    from kafkacompat.testing.reactor_thread import get_reactor_thread
    from kafkacompat.testing.running import RunningBroker
    from kafkacompat.testing.security import Security

    check_arguments(folder=folder, tls=tls, users=users, acls=acls, instances=instances, releases=releases)
    thread = get_reactor_thread()
    reactor = AdjustableReactor(thread.reactor)
    path = None if folder is None else os.path.abspath(folder)
    properties_of_instances = read_instances(instances)
    security = Security(tls, users or {}, acls, list(properties_of_instances))
    own = read_properties(properties)
    check_free(own, path, in_cluster=False)
    given = add_own_properties(security.build_properties(in_cluster=False), own)
    faults = Faults()
    node = _build_node(reactor, path, _add_releases(build_properties(1, 1, path, given), releases), faults)
    return RunningBroker(thread, reactor, node, faults, security, properties_of_instances)


def cluster(
    brokers: int = 3,
    folder: str | os.PathLike[str] | None = None,
    *,
    tls: bool = False,
    users: Mapping[str, str] | None = None,
    acls: Sequence[Acl] | None = None,
    releases: Iterable[str] = (),
    **properties: Any,
) -> RunningCluster:
    """Start a cluster of *brokers* in this process, with the ids 1, 2, …, on a ZooKeeper in memory.

    With *folder* each broker has a folder of its own there; the metadata of topics are in memory in any case. See `broker`.
    """
    from kafkacompat.adjustable_reactor import AdjustableReactor
    from kafkacompat.faults import Faults
    from kafkacompat.testing.arguments import check_arguments
    from kafkacompat.testing.errors import BrokerError
    from kafkacompat.testing.profile import add_own_properties, build_properties, check_free, read_properties
    from kafkacompat.testing.reactor_thread import get_reactor_thread
    from kafkacompat.testing.running import RunningCluster
    from kafkacompat.testing.security import Security
    from kafkacompat.zookeeper.memory import MemoryZooKeeper

    check_arguments(brokers=brokers, folder=folder, tls=tls, users=users, acls=acls, releases=releases)
    if not 1 <= brokers <= MOST_BROKERS:
        raise BrokerError(f"a cluster of {brokers} brokers: give a number from 1 to {MOST_BROKERS}")
    root = None if folder is None else os.path.abspath(folder)
    own = read_properties(properties)
    check_free(own, root, in_cluster=True)
    thread = get_reactor_thread()
    reactor = AdjustableReactor(thread.reactor)
    zookeeper, faults = MemoryZooKeeper(reactor), Faults(in_cluster=True)
    security = Security(tls, users or {}, acls)
    given = {"zookeeper.connect": "memory", **add_own_properties(security.build_properties(in_cluster=True), own)}
    releases = releases if isinstance(releases, str) else list(releases)
    nodes: list[Node] = []
    for node_id in range(1, brokers + 1):
        path = None if root is None else os.path.join(root, str(node_id))
        node_properties = _add_releases(build_properties(node_id, brokers, path, given), releases)
        nodes.append(_build_node(reactor, path, node_properties, faults, zookeeper))
    return RunningCluster(thread, reactor, nodes, faults, security)


def _add_releases(properties: dict[str, str], releases: Iterable[str]) -> dict[str, str]:
    if not releases:
        return properties
    from kafkacompat.testing.releases import add_release_listeners

    return add_release_listeners(properties, releases)


def _build_node(
    reactor: AdjustableReactor,
    folder: str | None,
    properties: dict[str, str],
    faults: Faults,
    zookeeper: MemoryZooKeeper | None = None,
) -> Node:
    from kafkacompat.host import ReactorHost
    from kafkacompat.testing.memory_host import ClusterFolderHost, InMemoryMachine
    from kafkacompat.testing.node import Node
    from kafkacompat.watched_host import WatchedHost

    if folder is None:
        return Node(InMemoryMachine(reactor, zookeeper).start_process, reactor, properties, folder=None, faults=faults)

    def start_process(process: ProcessReactor) -> Host:
        host = ReactorHost(process) if zookeeper is None else ClusterFolderHost(process, zookeeper)
        return WatchedHost(host, reactor.watch)

    return Node(start_process, reactor, properties, folder=folder, faults=faults)
