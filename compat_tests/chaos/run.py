"""A run of one scenario: the network, the cluster, the clients, the plan of faults, the verdict and its figures."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from compat_tests.chaos.clocks import has_compiler, settle_clock
from compat_tests.chaos.cluster import BROKERS, ChaosCluster, KafkaChaosCluster, OurChaosCluster
from compat_tests.chaos.disturbance import PlannedFaults
from compat_tests.chaos.network import CLIENTS, Network, build_loopback, build_namespaces
from compat_tests.chaos.plan import CLOCKS, KINDS, MOUNTS, SCENARIOS, SWITCH, draw_plan, list_kinds
from compat_tests.chaos.report import ChaosFigures
from compat_tests.chaos.roles import Roles
from compat_tests.chaos.world import FaultWorld
from kafkacompat.history.checks import judge_history
from kafkacompat.history.client import HistoryTopicNames
from kafkacompat.history.counts import list_gaps
from kafkacompat.history.events import read_history
from kafkacompat.history.run import Run, RunPlan, RunTally
from kafkacompat.history.service import count_faults, count_operations, find_longest_gaps

DISK_BYTES = 96 << 20
CLIENT_CONFIG = {"socket.timeout.ms": "5000", "request.timeout.ms": "5000"}
"""Clients give up a silent broker after a session, not after a minute."""


class ChaosOrders(NamedTuple):
    """The orders of a run."""

    scenario: str
    broker: str
    seed: int
    seconds: float
    folder: Path
    is_isolated: bool
    """Whether the process has mounts and a network of its own, which end with it."""


def run_scenario(orders: ChaosOrders) -> tuple[ChaosFigures, list[str]]:
    """Run a scenario; return its figures and the sentences of all findings. Raises RunError and OSError."""
    zookeepers = [f"zookeeper-{number}" for number in range(1, SCENARIOS[orders.scenario].zookeepers + 1)]
    names = [CLIENTS, *BROKERS.values(), *(zookeepers if orders.broker == "kafkacompat" else [])]
    network = _build_network(orders, names)
    kinds, left_out = list_kinds(orders.scenario, orders.broker, _list_abilities(orders, network))
    figures = ChaosFigures(
        orders.scenario,
        orders.broker,
        orders.seed,
        orders.seconds,
        "loopback" if network.switch is None else "namespaces",
        left_out=left_out,
    )
    if left_out:
        print(f"Left out on {orders.broker} here: {', '.join(left_out)}", flush=True)
    cluster = _build_cluster(orders, network)
    needs = {KINDS[kind].needs for kind in kinds}
    disks = {node: _mount_disk(cluster, node) for node in BROKERS} if MOUNTS in needs else {}
    clocks = {node: settle_clock(cluster.brokers[node]) for node in BROKERS} if CLOCKS in needs else {}
    plan = _build_run_plan(orders, cluster)
    world = FaultWorld(cluster, Roles(cluster, HistoryTopicNames.with_prefix(plan.topic_prefix)), disks, clocks)
    recording = orders.folder / "run" / "parts" / "chaos.0.jsonl"
    faults = PlannedFaults(draw_plan(kinds, orders.seed, orders.seconds), world, recording)
    history_path = orders.folder / "history.jsonl"
    run = Run(plan, orders.folder / "run", _show, disturbance=faults)
    try:
        cluster.prepare()
        cluster.start()
        run.make_history(history_path)
    finally:
        faults.stop()
        cluster.stop()
    return figures, _judge(history_path, figures, faults, run.tally)


def _show(_tally: RunTally) -> None:
    """Show nothing: each fault prints a line."""


def _judge(path: Path, figures: ChaosFigures, faults: PlannedFaults, tally: RunTally) -> list[str]:
    """Fill in the figures; return a sentence for each finding."""
    history, verdicts = judge_history(read_history(path))
    counted = count_operations(history)
    figures.operations, figures.acknowledged, figures.indeterminate = counted
    figures.faults = count_faults(history)
    figures.findings = {verdict.check.name: verdict.finding_count for verdict in verdicts if verdict.finding_count}
    figures.problems = [*faults.problems, *tally.client_failures, *list_gaps(history)]
    figures.longest_gaps_s = find_longest_gaps(history)
    return [f"{verdict.check.name}: {sentence}" for verdict in verdicts for sentence in verdict.first]


def _build_network(orders: ChaosOrders, names: Sequence[str]) -> Network:
    if orders.is_isolated:
        try:
            return build_namespaces(names, Random(orders.seed))
        except OSError as problem:
            print(f"Network namespaces are not possible here ({problem}): only loopback", flush=True)
    return build_loopback(names)


def _list_abilities(orders: ChaosOrders, network: Network) -> list[str]:
    possible = {SWITCH: network.switch is not None, MOUNTS: orders.is_isolated, CLOCKS: has_compiler()}
    return [name for name, is_possible in possible.items() if is_possible]


def _build_cluster(orders: ChaosOrders, network: Network) -> ChaosCluster:
    if orders.broker == "kafka":
        return KafkaChaosCluster(orders.folder, network, {})
    zookeepers = [host for name, host in network.hosts.items() if name.startswith("zookeeper")]
    return OurChaosCluster(orders.folder, network, {}, zookeepers)


def _mount_disk(cluster: ChaosCluster, node: int) -> Path:
    """Give a broker a small file system for its data; return its folder."""
    broker = cluster.brokers[node]
    disk = broker.folder / "disk"
    disk.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(disk)], check=True)
    broker.data_folder = disk / "data"
    return disk


def _build_run_plan(orders: ChaosOrders, cluster: ChaosCluster) -> RunPlan:
    return RunPlan(
        bootstrap=cluster.bootstrap,
        seconds=orders.seconds,
        kills=0,
        producers=2,
        transactional=2,
        copiers=2,
        members=3,
        group_protocol="mixed",
        throughput=100.0,
        seed=orders.seed,
        topic_prefix="chaos",
        replication_factor=-1,
        config=CLIENT_CONFIG,
        restart_command=None,
        session_timeout_ms=2_000,
    )
