"""Scenarios, and the plans of faults that a seed draws from them. A plan is data: when, which fault, with which arguments."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from random import Random
from typing import NamedTuple

Arguments = Mapping[str, object]

FIRST_FAULT_S = 2.0
PAUSE_S = (1.5, 4.0)
"""Shortest and longest time between the end of a fault and the next one."""
QUIET_END_S = 3.0
PARTITIONS = 4
ROLES = ("leader", "follower", "controller", "coordinator")

BEYOND_SESSION_S = (5.0, 8.0)
SHORT_S = (0.0, 6.0)
"""Some end before a session of 4 s does, and some after."""


class FaultKind(NamedTuple):
    """A kind of fault: how long it lasts, the choices for its arguments, what it needs, and how long it takes to make and heal.

    ``on_kafka`` is the kind that takes its place on Apache Kafka, which has no ZooKeeper; None if there is none.
    """

    name: str
    lasts_s: tuple[float, float]
    choices: Mapping[str, Sequence[object]]
    needs: str = ""
    on_kafka: str | None = ""
    takes_s: float = 0.0

    def name_on(self, broker: str) -> str | None:
        """Return the kind's name on a broker, None if the fault is left out there."""
        return self.name if broker != "kafka" or self.on_kafka == "" else self.on_kafka


SWITCH, MOUNTS, CLOCKS = "switch", "mounts", "clocks"
"""Needs: links that can be disturbed, small file systems, and clocks of brokers that can be set."""

_TARGETS = {"target": ROLES}

KINDS: dict[str, FaultKind] = {
    kind.name: kind
    for kind in (
        FaultKind("broker killed", SHORT_S, _TARGETS, takes_s=2.0),
        FaultKind("all brokers killed", (0.0, 2.0), {}, takes_s=4.0),
        FaultKind("broker paused", BEYOND_SESSION_S, _TARGETS),
        FaultKind("controller killed", SHORT_S, {}),
        FaultKind("controller paused", BEYOND_SESSION_S, {}),
        FaultKind("zookeeper killed", (0.0, 4.0), {}, on_kafka="controller killed"),
        FaultKind("zookeeper restarted", (0.0, 6.0), {}, on_kafka=None),
        FaultKind("zookeeper paused", BEYOND_SESSION_S, {}, on_kafka="controller paused"),
        FaultKind("session expired", (0.0, 0.0), _TARGETS, on_kafka=None),
        FaultKind("broker cut off", BEYOND_SESSION_S, _TARGETS, SWITCH),
        FaultKind("broker cut off one way", BEYOND_SESSION_S, {**_TARGETS, "direction": ("in", "out")}, SWITCH),
        FaultKind("brokers cut apart", BEYOND_SESSION_S, _TARGETS, SWITCH),
        FaultKind(
            "broker cut from zookeeper", BEYOND_SESSION_S, _TARGETS, SWITCH, on_kafka="broker cut from controller"
        ),
        FaultKind("broker cut from controller", BEYOND_SESSION_S, _TARGETS, SWITCH),
        FaultKind("zookeeper cut off", BEYOND_SESSION_S, {}, SWITCH, on_kafka="controller cut off"),
        FaultKind("controller cut off", BEYOND_SESSION_S, {}, SWITCH),
        FaultKind("links slow", (5.0, 10.0), {"delay_ms": (20, 50, 200)}, SWITCH),
        FaultKind("links lossy", (5.0, 10.0), {"lost_percent": (1, 5, 20), "delay_ms": (1, 20)}, SWITCH),
        FaultKind("disk full", (4.0, 8.0), _TARGETS, MOUNTS),
        FaultKind("disk refuses", (4.0, 8.0), _TARGETS, takes_s=2.0),
        FaultKind("clock set", (4.0, 10.0), {**_TARGETS, "offset_s": (-600, -30, 30, 600)}, CLOCKS),
        FaultKind("rolling restart", (0.0, 0.0), {}, takes_s=15.0),
        FaultKind("replica replaced", (0.0, 0.0), {**_TARGETS, "at_once": (False, True)}, takes_s=8.0),
    )
}


class Scenario(NamedTuple):
    """The kinds of faults of a scenario, and the number of ZooKeeper servers."""

    kinds: Sequence[str]
    zookeepers: int = 1


_KILLS = ("broker killed", "broker killed", "broker killed", "all brokers killed")
_ZOOKEEPER = ("zookeeper killed", "zookeeper restarted", "zookeeper paused", "session expired")
_CUTS = (
    "broker cut off",
    "broker cut off one way",
    "brokers cut apart",
    "broker cut from zookeeper",
    "zookeeper cut off",
)
_SLOW = ("links slow", "links lossy")
_DISKS = ("disk full", "disk refuses")

SCENARIOS: dict[str, Scenario] = {
    "kills": Scenario(_KILLS),
    "pauses": Scenario(("broker paused",)),
    "zookeeper": Scenario(_ZOOKEEPER),
    "ensemble": Scenario((*_ZOOKEEPER, "broker killed"), zookeepers=3),
    "cuts": Scenario(_CUTS),
    "ensemble-cuts": Scenario(_CUTS, zookeepers=3),
    "slow-links": Scenario((*_SLOW, "broker killed")),
    "disks": Scenario(_DISKS),
    "clocks": Scenario(("clock set",)),
    "rolling-restart": Scenario(("rolling restart",)),
    "replaced-replica": Scenario(("replica replaced",)),
    "everything": Scenario(
        (
            *_KILLS,
            "broker paused",
            *_ZOOKEEPER,
            *_CUTS,
            *_SLOW,
            *_DISKS,
            "clock set",
            "rolling restart",
            "replica replaced",
        ),
        zookeepers=3,
    ),
}


class PlannedFault(NamedTuple):
    """A fault that begins at a time of the clients' work, in seconds, and lasts some seconds."""

    at_s: float
    fault: str
    lasts_s: float
    arguments: Arguments


def list_kinds(scenario: str, broker: str, abilities: Collection[str]) -> tuple[list[str], list[str]]:
    """Return the kinds of a scenario as they are on a broker, and those that are left out.

    *abilities* are the needs that can be met.
    """
    kept, left_out = [], []
    for name in SCENARIOS[scenario].kinds:
        on_broker = KINDS[name].name_on(broker)
        if on_broker is None or (KINDS[on_broker].needs and KINDS[on_broker].needs not in abilities):
            left_out.append(name)
        else:
            kept.append(on_broker)
    return kept, sorted(set(left_out))


def draw_plan(kinds: Sequence[str], seed: int, seconds: float) -> list[PlannedFault]:
    """Draw faults that follow each other for *seconds*. Each kind comes once before any comes again."""
    random = Random(seed)
    plan: list[PlannedFault] = []
    at_s = FIRST_FAULT_S
    waiting: list[str] = []
    while kinds:
        if not waiting:
            waiting = random.sample(list(kinds), len(kinds))
        kind = KINDS[waiting.pop()]
        lasts_s = round(random.uniform(*kind.lasts_s), 1)
        if at_s + lasts_s + kind.takes_s > seconds - QUIET_END_S:
            break
        arguments = {name: random.choice(choices) for name, choices in kind.choices.items()}
        if "target" in arguments:
            arguments["number"] = random.randrange(PARTITIONS)
        plan.append(PlannedFault(round(at_s, 1), kind.name, lasts_s, arguments))
        at_s += lasts_s + kind.takes_s + random.uniform(*PAUSE_S)
    return plan
