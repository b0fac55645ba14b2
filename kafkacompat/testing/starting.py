"""`broker` and `cluster`. Importing this module loads no broker: plugins of pytest are imported by every run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkacompat.adjustable_reactor import AdjustableReactor
    from kafkacompat.host import Host
    from kafkacompat.testing.node import Node
    from kafkacompat.testing.process_reactor import ProcessReactor
    from kafkacompat.testing.running import RunningBroker, RunningCluster
    from kafkacompat.zookeeper.memory import MemoryZooKeeper

MOST_BROKERS = 100


def broker(
    folder: str | os.PathLike[str] | None = None, *, releases: Iterable[str] = (), **properties: Any
) -> RunningBroker:
    """Start a broker in this process and return it; leaving its ``with`` block stops it.

    The data are in memory, or in *folder*, where a later broker finds them. *properties* are those of Kafka's brokers, with
    ``_`` for ``.``. For each of *releases* the broker has a listener that looks like this release of Kafka, see
    `RunningBroker.release`. Raises BrokerError, one sentence, if the broker cannot start.
    """
    from kafkacompat.adjustable_reactor import AdjustableReactor
    from kafkacompat.testing.profile import build_properties, read_properties
    from kafkacompat.testing.reactor_thread import get_reactor_thread
    from kafkacompat.testing.running import RunningBroker

    thread = get_reactor_thread()
    reactor = AdjustableReactor(thread.reactor)
    path = None if folder is None else os.path.abspath(folder)
    given = build_properties(1, 1, path, read_properties(properties))
    return RunningBroker(thread, reactor, _build_node(reactor, path, _add_releases(given, releases)))


def cluster(
    brokers: int = 3,
    folder: str | os.PathLike[str] | None = None,
    *,
    releases: Iterable[str] = (),
    **properties: Any,
) -> RunningCluster:
    """Start a cluster of *brokers* in this process, with the ids 1, 2, …, on a ZooKeeper in memory.

    With *folder* each broker has a folder of its own there; the metadata of topics are in memory in any case. See `broker`.
    """
    from kafkacompat.adjustable_reactor import AdjustableReactor
    from kafkacompat.testing.errors import BrokerError
    from kafkacompat.testing.profile import build_properties, read_properties
    from kafkacompat.testing.reactor_thread import get_reactor_thread
    from kafkacompat.testing.running import RunningCluster
    from kafkacompat.zookeeper.memory import MemoryZooKeeper

    if not 1 <= brokers <= MOST_BROKERS:
        raise BrokerError(f"a cluster of {brokers} brokers: give a number from 1 to {MOST_BROKERS}")
    thread = get_reactor_thread()
    reactor = AdjustableReactor(thread.reactor)
    zookeeper = MemoryZooKeeper(reactor)
    nodes: list[Node] = []
    for node_id in range(1, brokers + 1):
        path = None if folder is None else os.path.join(os.path.abspath(folder), str(node_id))
        given = build_properties(node_id, brokers, path, read_properties(properties))
        given = _add_releases({"zookeeper.connect": "memory", **given}, releases)
        nodes.append(_build_node(reactor, path, given, zookeeper))
    return RunningCluster(thread, reactor, nodes)


def _add_releases(properties: dict[str, str], releases: Iterable[str]) -> dict[str, str]:
    if not releases:
        return properties
    from kafkacompat.testing.releases import add_release_listeners

    return add_release_listeners(properties, releases)


def _build_node(
    reactor: AdjustableReactor,
    folder: str | None,
    properties: dict[str, str],
    zookeeper: MemoryZooKeeper | None = None,
) -> Node:
    from kafkacompat.host import ReactorHost
    from kafkacompat.testing.memory_host import ClusterFolderHost, InMemoryMachine
    from kafkacompat.testing.node import Node
    from kafkacompat.watched_host import WatchedHost

    if folder is None:
        return Node(InMemoryMachine(reactor, zookeeper).start_process, reactor, properties, folder=None)

    def start_process(process: ProcessReactor) -> Host:
        host = ReactorHost(process) if zookeeper is None else ClusterFolderHost(process, zookeeper)
        return WatchedHost(host, reactor.watch)

    return Node(start_process, reactor, properties, folder=folder)
