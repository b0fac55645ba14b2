"""A whole cluster in one process: brokers, ZooKeeper, network and disks, on one timeline and from one seed."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from twisted.python.failure import Failure

from kafkacompat.groups.offsets_topic import OFFSETS_TOPIC
from kafkacompat.wire.java_hash import partition_for_key
from kafkacompat.zookeeper.memory import MemoryZooKeeper
from tests.fakes.memory_network import MemoryNetwork
from tests.simulation.cluster_state import ClusterState
from tests.simulation.links import Cuts
from tests.simulation.machines import Machine, State
from tests.simulation.monitor import Monitor
from tests.simulation.settings import PORT, Settings, host_of
from tests.simulation.timeline import Lane, Timeline

START_S = 1_700_000_000


class Counts:
    """How often things happened, and were planned but did not apply."""

    def __init__(self) -> None:
        self.happened: Counter[str] = Counter()
        self.skipped: Counter[str] = Counter()

    def happen(self, kind: str) -> None:
        """Count one."""
        self.happened[kind] += 1


class World:
    """The cluster. ``findings`` are sentences about what should not be; the run ends at the first one."""

    def __init__(self, settings: Settings, seed: int) -> None:
        self.seed = seed
        self.settings = settings
        self.timeline = Timeline(seed, START_S)
        self.counts = Counts()
        self.findings: list[str] = []
        self.network = MemoryNetwork(self.timeline.lane("network"))
        self.cuts = Cuts(self.network, seed, settings.link_ms / 1000)
        self.zookeeper = MemoryZooKeeper(self.timeline.lane("zookeeper"))
        zookeeper_rng = Random(f"{seed} zookeeper")
        self.zookeeper.draw_delay_s = lambda: settings.zookeeper_ms / 1000 * (0.5 + zookeeper_rng.random())
        self.stored = ClusterState(self.zookeeper, self.report)
        self.stored.unclean_topics.update(topic.name for topic in settings.topics if topic.is_unclean)
        self.is_healed = False
        self._lane = self.timeline.lane("plan")
        self._repairs: dict[int, Callable[[], object]] = {}
        self._next_repair = 0
        self.machines: dict[int, Machine] = {}
        self.monitor = Monitor(self.machines, self.stored, settings.acks_after, self.report)
        for node in settings.nodes:
            self.machines[node] = Machine(self, node)
            self.cuts.add_host(host_of(node))

    # Findings

    def report(self, finding: str) -> None:
        """Note a violation."""
        self.findings.append(f"{self.timeline.now - START_S:.3f} s: {finding}")

    def report_unless_found(self, finding: str) -> None:
        """Note a violation, unless the run has ended because of another one."""
        if not self.findings:
            self.report(finding)

    def fail(self, failure: Failure, subject: str) -> None:
        """Note an error that nothing handles."""
        trace = failure.getTraceback(elideFrameworkCode=True)
        self.report(f"{subject}: {failure.value!r}\n{trace}")

    # Time

    def at(self, time_s: float, act: Callable[[], object]) -> None:
        """Do something at a time since the beginning."""
        self._lane.callLater(max(0.0, time_s - self.elapsed_s), act)

    @property
    def elapsed_s(self) -> float:
        """The time since the beginning."""
        return self.timeline.now - START_S

    def advance(self, seconds: float) -> None:
        """Let time pass, or less than that after a finding."""
        self._run(seconds, lambda: False)

    def wait(self, is_done: Callable[[], bool], seconds: float, every_s: float = 0.1) -> bool:
        """Let time pass, and call *is_done* every *every_s* until it returns true; return whether it did."""
        end = self.timeline.now + seconds
        while not self.findings and not is_done():
            if self.timeline.now >= end:
                return False
            self._run(min(every_s, end - self.timeline.now), lambda: False)
        return not self.findings

    def _run(self, seconds: float, is_done: Callable[[], bool]) -> None:
        monitor, findings, changed = self.monitor, self.findings, self.monitor.changed

        def is_over() -> bool:
            if changed:
                monitor.check()
            return bool(findings)

        try:
            self.timeline.run(self.timeline.now + seconds, is_over)
        except Exception:
            self.fail(Failure(), "a call failed")

    # Hosts

    def new_host(self, name: str) -> tuple[Lane, Any]:
        """Return the clock and the network of a client's machine."""
        lane = self.timeline.lane(name)
        host = self.network.at(name, lane)
        self.cuts.add_host(name)
        return lane, host

    @property
    def bootstrap(self) -> list[tuple[str, int]]:
        """The addresses of all brokers."""
        return [(host_of(node), PORT) for node in self.settings.nodes]

    def up(self) -> list[Machine]:
        """The machines whose brokers serve."""
        return [machine for machine in self.machines.values() if machine.state is State.UP]

    def controller(self) -> Machine | None:
        """The machine of the controller, if it is up."""
        owner = self.stored.controller()
        return next((machine for machine in self.machines.values() if machine.owns_session(owner)), None)

    def leader(self, topic: str, partition: int) -> Machine | None:
        """The machine of the broker that leads a partition by ZooKeeper, if there is one."""
        stored = self.stored.partitions.get((topic, partition))
        return None if stored is None or stored.state is None else self.machines.get(stored.state.leader)

    def group_coordinator(self, group: str) -> int:
        """The number of the broker that coordinates a group by ZooKeeper, -1 if there is none."""
        count = sum(topic == OFFSETS_TOPIC for topic, _ in self.stored.partitions)
        stored = self.stored.partitions.get((OFFSETS_TOPIC, partition_for_key(group, count))) if count else None
        return -1 if stored is None or stored.state is None else stored.state.leader

    # Faults

    def later(self, seconds: float, repair: Callable[[], object]) -> None:
        """Repair what a fault did after some time, or when all faults end."""
        number = self._next_repair
        self._next_repair += 1
        self._repairs[number] = repair
        self._lane.callLater(seconds, self._repair, number)

    def _repair(self, number: int) -> None:
        repair = self._repairs.pop(number, None)
        if repair is not None:
            repair()

    def end_faults(self) -> None:
        """Repair everything, and start all brokers that are down."""
        self.is_healed = True
        while self._repairs:
            self._repair(next(iter(self._repairs)))
        for machine in self.machines.values():
            machine.repair()
            machine.return_power()
            machine.start()

    def start(self, timeout_s: float) -> bool:
        """Start all brokers; return whether they serve in time."""
        for machine in self.machines.values():
            machine.start()
        return self.wait(lambda: len(self.up()) == len(self.machines), timeout_s)

    def close(self) -> None:
        """Forget everything."""
        for machine in self.machines.values():
            if machine.state is not State.DOWN:
                machine.kill()
        gc.collect()
