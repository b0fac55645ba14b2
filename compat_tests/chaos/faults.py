"""The faults, as a table of context managers: a fault begins with the block and is healed after it."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

from compat_tests.chaos.clocks import write_clock
from compat_tests.chaos.cluster import BROKERS
from compat_tests.chaos.network import CLIENTS
from compat_tests.chaos.world import FaultWorld
from compat_tests.processes import suspend_process
from compat_tests.zookeeper import ZooKeeperServer

LONGEST_IN_SYNC_SECONDS = 40.0
LONGEST_OUT_OF_SYNC_SECONDS = 20.0
LONGEST_SESSION_SECONDS = 15.0
FILLER_BYTES = 1 << 20
CONTROLLER: dict[str, Any] = {"target": "controller", "number": 0}
"""The arguments of a fault that hits the controller."""


@contextmanager
def kill_broker(world: FaultWorld, **arguments: Any) -> Iterator[str]:
    node = world.find(arguments)
    world.cluster.kill(node)
    try:
        yield BROKERS[node]
    finally:
        world.cluster.start_node(node)


@contextmanager
def kill_all_brokers(world: FaultWorld) -> Iterator[str]:
    for node in BROKERS:
        world.cluster.kill(node)
    try:
        yield "all brokers"
    finally:
        with ThreadPoolExecutor(len(BROKERS)) as threads:
            list(threads.map(world.cluster.start_node, BROKERS))


@contextmanager
def pause_broker(world: FaultWorld, **arguments: Any) -> Iterator[str]:
    node = world.find(arguments)
    world.cluster.suspend(node)
    try:
        yield BROKERS[node]
    finally:
        os.kill(world.cluster.brokers[node].pid, signal.SIGCONT)


@contextmanager
def kill_zookeeper(world: FaultWorld) -> Iterator[str]:
    name = world.find_zookeeper_leader()
    server = world.ensemble.servers[name]
    server.kill()
    try:
        yield name
    finally:
        server.start()


@contextmanager
def restart_zookeeper(world: FaultWorld) -> Iterator[str]:
    servers = world.ensemble.servers
    for server in servers.values():
        server.kill()
    try:
        yield "all of ZooKeeper"
    finally:
        with ThreadPoolExecutor(len(servers)) as threads:
            list(threads.map(ZooKeeperServer.start, servers.values()))


@contextmanager
def pause_zookeeper(world: FaultWorld) -> Iterator[str]:
    servers = world.ensemble.servers
    for server in servers.values():
        suspend_process(server.pid)
    try:
        yield "all of ZooKeeper"
    finally:
        for server in servers.values():
            os.kill(server.pid, signal.SIGCONT)


@contextmanager
def expire_session(world: FaultWorld, **arguments: Any) -> Iterator[str]:
    """End a broker's session; any broker's on loopback, where all of them have the same address for ZooKeeper."""
    if not world.wait_for(lambda: bool(world.ensemble.find_sessions()), LONGEST_SESSION_SECONDS):
        yield "nothing: no broker had a session"
        return
    node, sessions = world.find(arguments), world.ensemble.find_sessions()
    own = [session for address, session in sessions if address == world.cluster.host(node).address]
    session = own[0] if own else sessions[0][1]
    world.ensemble.expire(session)
    yield f"{BROKERS[node] if own else 'a broker'}, session {session:#x}"


@contextmanager
def cut_broker_off(world: FaultWorld, direction: str = "both", **arguments: Any) -> Iterator[str]:
    node = world.find(arguments)
    with _cut(world, node, None, direction) as name:
        yield name if direction == "both" else f"{name}, {direction}"


@contextmanager
def cut_brokers_apart(world: FaultWorld, **arguments: Any) -> Iterator[str]:
    node = world.find(arguments)
    with _cut(world, node, [name for other, name in BROKERS.items() if other != node]) as name:
        yield name


@contextmanager
def cut_broker_from_zookeeper(world: FaultWorld, **arguments: Any) -> Iterator[str]:
    with _cut(world, world.find(arguments), world.zookeeper_hosts) as name:
        yield name


@contextmanager
def cut_broker_from_controller(world: FaultWorld, **arguments: Any) -> Iterator[str]:
    controller, node = world.roles.find("controller", 0), world.find(arguments)
    if node == controller:
        node = node % len(BROKERS) + 1
    with _cut(world, node, [BROKERS[controller]]) as name:
        yield name


@contextmanager
def cut_zookeeper_off(world: FaultWorld) -> Iterator[str]:
    network = world.cluster.network
    network.cut(world.zookeeper_hosts, list(BROKERS.values()))
    try:
        yield "all of ZooKeeper"
    finally:
        network.heal()


@contextmanager
def _cut(world: FaultWorld, node: int, others: list[str] | None, direction: str = "both") -> Iterator[str]:
    network = world.cluster.network
    network.cut([BROKERS[node]], others, direction)
    try:
        yield BROKERS[node]
    finally:
        network.heal()


@contextmanager
def slow_links(world: FaultWorld, delay_ms: int, lost_percent: int = 0) -> Iterator[str]:
    network = world.cluster.network
    network.slow([name for name in network.hosts if name != CLIENTS], delay_ms / 1000, lost_percent / 100)
    try:
        yield f"all links, {delay_ms} ms, {lost_percent} % lost"
    finally:
        network.heal()


@contextmanager
def fill_disk(world: FaultWorld, **arguments: Any) -> Iterator[str]:
    node = world.find(arguments)
    filler = world.disks[node] / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(FILLER_BYTES)) == FILLER_BYTES:
                pass
        except OSError:
            pass  # the file system is full
    try:
        yield BROKERS[node]
    finally:
        filler.unlink()


@contextmanager
def refuse_writes(world: FaultWorld, **arguments: Any) -> Iterator[str]:
    """Let every write of a broker to a file fail, by a limit of its process; it starts again afterwards."""
    node = world.find(arguments)
    _, most = resource.prlimit(world.cluster.brokers[node].pid, resource.RLIMIT_FSIZE)
    resource.prlimit(world.cluster.brokers[node].pid, resource.RLIMIT_FSIZE, (0, most))
    try:
        yield BROKERS[node]
    finally:
        world.cluster.kill(node)
        world.cluster.start_node(node)


@contextmanager
def set_clock(world: FaultWorld, offset_s: int, **arguments: Any) -> Iterator[str]:
    node = world.find(arguments)
    write_clock(world.clocks[node], offset_s)
    try:
        yield f"{BROKERS[node]}, {offset_s:+d} s"
    finally:
        write_clock(world.clocks[node], 0)


@contextmanager
def restart_in_turn(world: FaultWorld) -> Iterator[str]:
    for node in BROKERS:
        world.cluster.stop_node(node)
        world.cluster.start_node(node)
        world.wait_for(world.roles.in_sync, LONGEST_IN_SYNC_SECONDS)
    yield "all brokers in turn"


def _is_started(world: FaultWorld, node: int) -> bool:
    """Start a broker as a supervisor does: ours refuses an empty disk while its old session lives, and is started again."""
    try:
        world.cluster.start_node(node)
    except AssertionError:
        return False
    return True


@contextmanager
def replace_replica(world: FaultWorld, at_once: bool, **arguments: Any) -> Iterator[str]:
    """Give a broker an empty disk, at once or after it has left the in-sync sets; only while the other replicas are in sync."""
    if not world.wait_for(world.roles.in_sync, LONGEST_IN_SYNC_SECONDS):
        yield "nothing: not all replicas were in sync"
        return
    node = world.find(arguments)
    world.cluster.kill(node)
    is_out = at_once or world.wait_for(lambda: world.roles.is_out_of_sync(node), LONGEST_OUT_OF_SYNC_SECONDS)
    if is_out:
        world.cluster.wipe(node)
    if not world.wait_for(lambda: _is_started(world, node), LONGEST_SESSION_SECONDS):
        world.cluster.start_node(node)
    world.wait_for(world.roles.in_sync, LONGEST_IN_SYNC_SECONDS)
    yield f"{BROKERS[node]}, {'at once' if at_once else 'out of sync'}" if is_out else f"{BROKERS[node]}, only killed"


FAULTS: dict[str, Callable[..., AbstractContextManager[str]]] = {
    "broker killed": kill_broker,
    "all brokers killed": kill_all_brokers,
    "broker paused": pause_broker,
    "controller killed": partial(kill_broker, **CONTROLLER),
    "controller paused": partial(pause_broker, **CONTROLLER),
    "zookeeper killed": kill_zookeeper,
    "zookeeper restarted": restart_zookeeper,
    "zookeeper paused": pause_zookeeper,
    "session expired": expire_session,
    "broker cut off": cut_broker_off,
    "broker cut off one way": cut_broker_off,
    "brokers cut apart": cut_brokers_apart,
    "broker cut from zookeeper": cut_broker_from_zookeeper,
    "broker cut from controller": cut_broker_from_controller,
    "zookeeper cut off": cut_zookeeper_off,
    "controller cut off": partial(cut_brokers_apart, **CONTROLLER),
    "links slow": slow_links,
    "links lossy": slow_links,
    "disk full": fill_disk,
    "disk refuses": refuse_writes,
    "clock set": set_clock,
    "rolling restart": restart_in_turn,
    "replica replaced": replace_replica,
}
"""By the names of their kinds (`plan.KINDS`). Each yields its target."""
