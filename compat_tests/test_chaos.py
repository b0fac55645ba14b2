"""A sample of `make chaos`, what it leaves behind after Ctrl-C, and its parts by themselves."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from compat_tests.brokers import ROOT
from compat_tests.chaos.ensemble import session_password
from compat_tests.chaos.faults import FAULTS
from compat_tests.chaos.plan import FIRST_FAULT_S, KINDS, QUIET_END_S, SCENARIOS, draw_plan, list_kinds
from compat_tests.chaos.report import (
    BEGIN,
    END,
    PAGE,
    RESULTS,
    ChaosFigures,
    add_run,
    read_runs,
    render_runs,
    replace_table,
)
from compat_tests.chaos.switch import CUT, LinkRule, Switch
from compat_tests.waiting import until

SECONDS = 50
"""Every plan of this length has at least three faults."""
LONGEST_SECONDS = 400
ALL_NEEDS = ("switch", "mounts", "clocks")


@pytest.fixture
def _only_ours(broker_kind: str) -> None:
    if broker_kind != "kafkacompat":
        pytest.skip("make chaos BROKER=kafka runs it on Apache Kafka")


def chaos(tmp_path: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "compat_tests.chaos", "--results", str(tmp_path / "chaos.json"), *options]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


@pytest.mark.usefixtures("_only_ours")
def test_a_sample_of_everything(tmp_path: Path) -> None:
    running = chaos(tmp_path, "--scenario", "everything", "--seconds", str(SECONDS))
    try:
        output, _ = running.communicate(timeout=LONGEST_SECONDS)
    finally:
        running.send_signal(signal.SIGINT)
        running.wait()
    assert running.returncode == 0, output
    (figures,) = read_runs(tmp_path / "chaos.json")
    assert sum(figures.faults.values()) >= 3 and figures.acknowledged > 1000
    assert (figures.findings, figures.problems) == ({}, [])
    assert left_behind(tmp_path) == []


@pytest.mark.usefixtures("_only_ours")
@pytest.mark.parametrize("options", [(), pytest.param(("--loopback",), marks=pytest.mark.tools)])
def test_nothing_is_left_behind_after_sigint(tmp_path: Path, options: tuple[str, ...]) -> None:
    networks = network_namespaces()
    running = chaos(tmp_path, "--scenario", "kills", "--seconds", "60", *options)
    assert running.stdout is not None
    try:
        # The first fault is under way when its line appears.
        line = next(line for line in running.stdout if "killed: " in line)
    finally:
        running.send_signal(signal.SIGINT)
        rest = running.stdout.read()
        running.wait(60)
    assert running.returncode == 2 and "No verdict: interrupted" in rest, line + rest
    until(lambda: not left_behind(tmp_path))
    assert network_namespaces() == networks


def left_behind(folder: Path) -> list[str]:
    """List processes and mounts that have a folder in their command line or path."""
    processes = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue  # it has ended in the meantime
        if str(folder) in words and int(entry.name) != os.getpid():
            processes.append(words)
    mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(folder) in line]
    return processes + mounts


def network_namespaces() -> set[str]:
    """Return the network namespaces that processes have, and those with a name."""
    namespaces = {f"named {entry.name}" for entry in Path("/run/netns").glob("*")}
    for entry in Path("/proc").glob("[0-9]*/ns/net"):
        try:
            namespaces.add(os.readlink(entry))
        except OSError:
            continue  # it has ended in the meantime
    return namespaces


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_plan_follows_from_its_seed(scenario: str) -> None:
    kinds, left_out = list_kinds(scenario, "kafkacompat", ALL_NEEDS)
    assert left_out == [] and set(kinds) == set(SCENARIOS[scenario].kinds)
    plan = draw_plan(kinds, 7, 300)
    assert plan == draw_plan(kinds, 7, 300) != draw_plan(kinds, 8, 300)
    assert {planned.fault for planned in plan} == set(kinds)
    assert plan[0].at_s == FIRST_FAULT_S
    assert all(before.at_s + before.lasts_s < after.at_s for before, after in itertools.pairwise(plan))
    assert plan[-1].at_s + plan[-1].lasts_s <= 300 - QUIET_END_S


def test_faults_of_zookeeper_become_those_of_the_quorums_controller_or_are_left_out() -> None:
    assert list_kinds("zookeeper", "kafka", ALL_NEEDS) == (
        ["controller killed", "controller paused"],
        ["session expired", "zookeeper restarted"],
    )
    kinds, _ = list_kinds("cuts", "kafka", ALL_NEEDS)
    assert {"broker cut from controller", "controller cut off"} <= set(kinds)


def test_without_a_switch_cuts_are_left_out() -> None:
    assert list_kinds("cuts", "kafkacompat", ()) == ([], sorted(SCENARIOS["cuts"].kinds))
    assert draw_plan([], 1, 60) == []


def test_every_kind_of_fault_can_be_made() -> None:
    assert set(FAULTS) == set(KINDS)
    assert {kind.on_kafka for kind in KINDS.values() if kind.on_kafka} <= set(KINDS)


def test_the_switch_delays_loses_and_cuts_by_direction() -> None:
    (sent, first), (received, second) = os.pipe(), os.pipe()
    switch = Switch({1: first, 2: second}, Random(1))
    packet = bytes([0x45, *bytes(18), 2])
    switch._take(1, 2, packet)
    assert os.read(received, 100) == packet
    switch.set_rules({(1, 2): CUT, (2, 1): LinkRule(delay_s=0.0)})
    switch._take(1, 2, packet)
    back = bytes([0x45, *bytes(18), 1])
    switch._take(2, 1, back)
    switch._deliver_due()
    assert os.read(sent, 100) == back
    os.set_blocking(received, False)
    with pytest.raises(BlockingIOError):
        os.read(received, 100)
    for descriptor in (sent, first, received, second):
        os.close(descriptor)


def test_passwords_of_sessions_are_zookeepers() -> None:
    # Java: new Random(0x100001234560000L ^ 0xB3415C00L).nextBytes(bytes)
    assert session_password(0x100001234560000).hex() == "28dca4e895de729d466f3f4d668d25c0"


def figures(scenario: str, broker: str, operations: int) -> ChaosFigures:
    return ChaosFigures(
        scenario,
        broker,
        seed=1,
        seconds=60,
        network="namespaces",
        operations=operations,
        faults={"broker killed": 3},
        findings={},
        longest_gaps_s={"writers": 1.25, "readers": 2.0, "groups": 3.0},
    )


def test_results_keep_the_last_run_of_each_scenario_and_broker(tmp_path: Path) -> None:
    path = tmp_path / "chaos.json"
    for run in (figures("kills", "kafka", 1), figures("pauses", "kafkacompat", 2), figures("kills", "kafkacompat", 3)):
        add_run(path, run)
    add_run(path, figures("kills", "kafka", 4))
    assert [(run.scenario, run.broker, run.operations) for run in read_runs(path)] == [
        ("kills", "kafkacompat", 3),
        ("kills", "kafka", 4),
        ("pauses", "kafkacompat", 2),
    ]


def test_the_table_replaces_the_text_between_the_markers() -> None:
    runs = [figures("kills", "kafka", 1234)]
    page = replace_table(f"before\n{BEGIN}old\n{END}\nafter\n", runs)
    assert page == f"before\n{BEGIN}{render_runs(runs)}{END}\nafter\n"
    assert "| kills | Apache Kafka 4.3.1 | 60 | 3 × broker killed | 1,234 | 0 | 0 | 1.2 s, 2.0 s, 3.0 s |" in page
    with pytest.raises(ValueError, match="the page has no"):
        replace_table("nothing", runs)


def test_the_page_has_the_table_of_the_results() -> None:
    if not PAGE.exists():
        pytest.skip("there is no such page yet")
    page = PAGE.read_text()
    assert replace_table(page, read_runs(RESULTS)) == page
