"""The kinds of faults as a table: how each one is drawn, and what it does. Each ends by itself after the time that was drawn.

A fault that does not apply when its time comes, as a broker to kill that is down already, returns False.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from tests.fakes.power_failures import CONTENTS, NAMES
from tests.simulation.machines import Machine, State
from tests.simulation.settings import Settings, host_of
from tests.simulation.world import World

Arguments = dict[str, Any]

DOWN_S = (0.0, 0.5, 3.0, 12.0)
OUTAGE_S = (0.3, 2.0, 6.0, 15.0)
DISK_OPERATIONS = ("append", "sync", "sync_directory", "truncate", "pread", "open")


class Fault(NamedTuple):
    """A kind of fault; ``weight`` is how often it is drawn beside the others."""

    weight: int
    draw: Callable[[Settings, Random], Arguments]
    act: Callable[..., bool]


# --- drawing ---


def _node(settings: Settings, rng: Random) -> int:
    return rng.choice(settings.nodes)


def _draw_node_down(settings: Settings, rng: Random) -> Arguments:
    return {"node": _node(settings, rng), "down_s": rng.choice(DOWN_S)}


def _draw_down(settings: Settings, rng: Random) -> Arguments:
    return {"down_s": rng.choice(DOWN_S)}


def _draw_pair(settings: Settings, rng: Random) -> Arguments:
    a, b = rng.sample(settings.nodes, 2)
    return {"a": a, "b": b, "seconds": rng.choice(OUTAGE_S)}


def _draw_node_outage(settings: Settings, rng: Random) -> Arguments:
    return {"node": _node(settings, rng), "seconds": rng.choice(OUTAGE_S)}


def _draw_pause(settings: Settings, rng: Random) -> Arguments:
    timeout_s = settings.session_timeout_ms / 1000
    seconds = rng.choice((0.3, timeout_s / 2, timeout_s + 1, timeout_s * 2))
    return {"node": _node(settings, rng), "seconds": seconds, "noticed_after_s": rng.choice((0.001, 0.05, 0.5))}


def _draw_way(rng: Random) -> Arguments:
    return {"names": rng.choice(list(NAMES)), "contents": rng.choice(list(CONTENTS))}


def _draw_place(settings: Settings, rng: Random) -> Arguments:
    topic = rng.choice(settings.topics)
    return {"topic": topic.name, "partition": rng.randrange(topic.partitions)}


# --- connections ---


def _cut(world: World, a: int, b: int, seconds: float) -> bool:
    return _cut_links(world, [(host_of(a), host_of(b)), (host_of(b), host_of(a))], seconds)


def _cut_one_way(world: World, a: int, b: int, seconds: float) -> bool:
    return _cut_links(world, [(host_of(a), host_of(b))], seconds)


def _cut_links(world: World, links: list[tuple[str, str]], seconds: float) -> bool:
    world.cuts.cut(links)
    world.later(seconds, lambda: world.cuts.heal(links))
    return True


def _isolate(world: World, node: int, seconds: float) -> bool:
    """Cut a broker off from all others, but neither from ZooKeeper nor from clients."""
    others = [host_of(other) for other in world.settings.nodes if other != node]
    name = host_of(node)
    return _cut_links(world, [(name, other) for other in others] + [(other, name) for other in others], seconds)


def _delay(world: World, a: int, b: int, seconds: float, delay_s: float) -> bool:
    world.cuts.set_delay(host_of(a), host_of(b), delay_s)
    world.later(seconds, lambda: world.cuts.set_delay(host_of(a), host_of(b), 0))
    return True


def _reset(world: World, node: int) -> bool:
    transports = list(world.machines[node].network.transports)
    for transport in transports:
        peer = transport.peer
        transport.receive_reset()
        peer.receive_reset()
    return bool(transports)


def _half_open(world: World, node: int) -> bool:
    transports = list(world.machines[node].network.transports)
    for transport in transports[:: 2 if len(transports) > 1 else 1]:
        transport.vanish()
    return bool(transports)


# --- processes and machines ---


def _kill(world: World, node: int, down_s: float) -> bool:
    return _end(world, world.machines[node], down_s, Machine.kill)


def _end(world: World, machine: Machine, down_s: float, end: Callable[[Machine], object]) -> bool:
    if machine.state is State.DOWN:
        return False
    end(machine)
    world.monitor.note_outage()
    machine.start_later(down_s)
    return True


def _kill_all(world: World, down_s: float) -> bool:
    return sum(_kill(world, node, down_s + 0.3 * node) for node in world.machines) > 0


def _kill_controller(world: World, down_s: float) -> bool:
    machine = world.controller()
    return machine is not None and _kill(world, machine.node, down_s)


def _kill_leader(world: World, topic: str, partition: int, down_s: float) -> bool:
    machine = world.leader(topic, partition)
    return machine is not None and _kill(world, machine.node, down_s)


def _kill_controller_and_leader(world: World, topic: str, partition: int, down_s: float) -> bool:
    controller, leader = world.controller(), world.leader(topic, partition)
    ended = [_kill(world, machine.node, down_s) for machine in (controller, leader) if machine is not None]
    return any(ended)


def _lose_power(world: World, node: int, names: str, contents: str, down_s: float) -> bool:
    def end(machine: Machine) -> None:
        world.monitor.note_power_failure(node)
        machine.lose_power(names, contents)
        world.later(down_s, machine.return_power)

    return _end(world, world.machines[node], down_s, end)


def _lose_all_power(world: World, names: str, contents: str, down_s: float) -> bool:
    return sum(_lose_power(world, node, names, contents, down_s + 0.2 * node) for node in world.machines) > 0


def _pause(world: World, node: int, seconds: float, noticed_after_s: float) -> bool:
    machine = world.machines[node]
    if machine.state is State.DOWN or machine.lane.is_paused:
        return False
    machine.pause()
    world.monitor.note_outage()
    life = machine.life

    def resume() -> None:
        if machine.life == life:
            machine.resume(noticed_after_s)

    world.later(seconds, resume)
    return True


def _stop(world: World, node: int, down_s: float) -> bool:
    machine = world.machines[node]
    if machine.state is not State.UP or machine.lane.is_paused:
        return False
    machine.stop(lambda: machine.start_later(down_s))
    return True


def _restart_all(world: World, down_s: float) -> bool:
    """Restart the brokers one after the other, each in order, as an upgrade does."""
    rest = list(world.machines.values())

    def start_and_go_on(machine: Machine) -> None:
        machine.start_later(down_s)
        world.later(down_s + 2.0, restart_next)

    def restart_next() -> None:
        if not rest or world.is_healed:
            return
        machine = rest.pop()
        if machine.state is State.UP and not machine.lane.is_paused:
            machine.stop(lambda: start_and_go_on(machine))
        else:
            world.later(1.0, restart_next)

    restart_next()
    return True


def _jump_clock(world: World, node: int, jump_s: float) -> bool:
    machine = world.machines[node]
    if machine.state is State.DOWN:
        return False
    machine.clock.jump(jump_s)
    return True


# --- disks ---


def _slow_disk(world: World, node: int, factor: float, seconds: float) -> bool:
    speed = world.machines[node].disk_speed
    speed.factor = factor
    world.later(seconds, lambda: setattr(speed, "factor", 1.0))
    return True


def _fail_disk(world: World, node: int, operation: str, down_s: float) -> bool:
    """Let an operation fail once. Somebody repairs the disk, and restarts the broker if a log directory is offline."""
    machine = world.machines[node]
    if machine.state is not State.UP:
        return False
    machine.files.fail_on(operation, errno.EIO, times=1)
    world.later(down_s + 1.0, lambda: machine.repair())
    return True


def _fill_disk(world: World, node: int, seconds: float, is_full_for_all: bool) -> bool:
    machine = world.machines[node]
    machine.fill_disk(is_full_for_all)
    world.later(seconds, machine.empty_disk)
    return True


# --- ZooKeeper ---


def _expire(world: World, node: int, noticed_after_s: float) -> bool:
    """Expire a broker's session while the broker believes in it."""
    session = world.machines[node].session
    if session is None or world.zookeeper.is_away:
        return False
    world.zookeeper.disconnect(session, noticed_after_seconds=noticed_after_s)
    world.zookeeper.expire(session.session_id)
    world.monitor.note_outage()
    world.later(noticed_after_s, lambda: world.zookeeper.reconnect(session))
    return True


def _disconnect(world: World, node: int, noticed_after_s: float, seconds: float) -> bool:
    session = world.machines[node].session
    if session is None:
        return False
    world.zookeeper.disconnect(session, noticed_after_seconds=noticed_after_s)
    world.later(seconds, lambda: world.zookeeper.reconnect(session))
    return True


def _stop_zookeeper(world: World, seconds: float) -> bool:
    if world.zookeeper.is_away:
        return False
    world.zookeeper.go_away(noticed_after_seconds=0.05)
    world.later(seconds, world.zookeeper.come_back)
    return True


def _lose_answer(world: World, node: int) -> bool:
    session = world.machines[node].session
    if session is None:
        return False
    world.zookeeper.lose_next_answer(session)
    return True


def _delay_watches(world: World, delay_s: float, seconds: float) -> bool:
    world.zookeeper.delay_watches(delay_s)
    world.later(seconds, lambda: world.zookeeper.delay_watches(0))
    return True


FAULTS: dict[str, Fault] = {
    "cut": Fault(4, _draw_pair, _cut),
    "cut one way": Fault(3, _draw_pair, _cut_one_way),
    "isolate": Fault(3, _draw_node_outage, _isolate),
    "delay": Fault(2, lambda s, r: {**_draw_pair(s, r), "delay_s": r.choice((0.05, 0.5, 2.0))}, _delay),
    "reset": Fault(2, lambda s, r: {"node": _node(s, r)}, _reset),
    "half-open": Fault(2, lambda s, r: {"node": _node(s, r)}, _half_open),
    "kill": Fault(6, _draw_node_down, _kill),
    "kill all": Fault(1, _draw_down, _kill_all),
    "kill controller": Fault(3, _draw_down, _kill_controller),
    "kill leader": Fault(4, lambda s, r: {**_draw_place(s, r), **_draw_down(s, r)}, _kill_leader),
    "kill controller and leader": Fault(
        2, lambda s, r: {**_draw_place(s, r), **_draw_down(s, r)}, _kill_controller_and_leader
    ),
    "lose power": Fault(4, lambda s, r: {**_draw_node_down(s, r), **_draw_way(r)}, _lose_power),
    "lose all power": Fault(1, lambda s, r: {**_draw_down(s, r), **_draw_way(r)}, _lose_all_power),
    "pause": Fault(5, _draw_pause, _pause),
    "stop": Fault(3, _draw_node_down, _stop),
    "restart all": Fault(1, _draw_down, _restart_all),
    "jump clock": Fault(
        1, lambda s, r: {"node": _node(s, r), "jump_s": r.choice((-3.0, -0.5, 0.5, 3.0, 30.0))}, _jump_clock
    ),
    "slow disk": Fault(
        2, lambda s, r: {**_draw_node_outage(s, r), "factor": r.choice((10.0, 100.0, 500.0))}, _slow_disk
    ),
    "fail disk": Fault(2, lambda s, r: {**_draw_node_down(s, r), "operation": r.choice(DISK_OPERATIONS)}, _fail_disk),
    "fill disk": Fault(1, lambda s, r: {**_draw_node_outage(s, r), "is_full_for_all": r.random() < 0.3}, _fill_disk),
    "expire": Fault(4, lambda s, r: {"node": _node(s, r), "noticed_after_s": r.choice((0.01, 1.0, 5.0))}, _expire),
    "disconnect": Fault(
        3, lambda s, r: {**_draw_node_outage(s, r), "noticed_after_s": r.choice((0.0, 1.0, 5.0))}, _disconnect
    ),
    "stop ZooKeeper": Fault(2, lambda s, r: {"seconds": r.choice(OUTAGE_S)}, _stop_zookeeper),
    "lose answer": Fault(4, lambda s, r: {"node": _node(s, r)}, _lose_answer),
    "late watches": Fault(
        3, lambda s, r: {"delay_s": r.choice((0.1, 0.5, 2.0)), "seconds": r.choice(OUTAGE_S)}, _delay_watches
    ),
}
