"""The matrix itself: clients that are here anyway go through its programme, and programs that misbehave are ended."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_tests.java_tools import POM
from compat_tests.matrix.cluster_stage import ClusterStage
from compat_tests.matrix.driver import ClientError, Driver, Launch
from compat_tests.matrix.install import java_over
from compat_tests.matrix.instance_stage import running_instance_stages
from compat_tests.matrix.programme import ALWAYS, NOT_APPLICABLE, OK, STEPS
from compat_tests.matrix.rows import CONTENTS, GROUPS, PRODUCERS, Row
from compat_tests.matrix.run import AnyStage, Stage, run_row
from spark_integration.runtime.maven import jar_folder

DRIVERS = "compat_tests.matrix.clients.python"
FEATURES = frozenset(f"gzip {CONTENTS} {GROUPS} {PRODUCERS}".split())
ROWS = {
    "java": lambda: java_over(jar_folder(POM), "4.3.1", "v0_11"),
    "kafka-python": lambda: Launch([sys.executable, "-m", f"{DRIVERS}.with_kafka_python"]),
    "confluent-kafka": lambda: Launch([sys.executable, "-m", f"{DRIVERS}.with_confluent_kafka"]),
}


@pytest.fixture(scope="module")
def stage(broker_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with Stage(broker_kind, tmp_path_factory.mktemp("matrix")) as running:
        yield running


@pytest.mark.parametrize(
    "name", ["confluent-kafka", *(pytest.param(name, marks=pytest.mark.tools) for name in ("java", "kafka-python"))]
)
def test_a_client_goes_through_the_programme(stage: Stage, name: str) -> None:
    steps = check_programme(stage, name)
    assert steps[0] == "installing"


@pytest.mark.tools
def test_a_client_goes_through_the_programme_on_three_brokers(broker_kind: str, tmp_path: Path) -> None:
    if broker_kind != "kafkacompat":
        pytest.skip("the three brokers are ours")
    with ClusterStage(tmp_path) as cluster:
        check_programme(cluster, "confluent-kafka")


@pytest.mark.tools
def test_a_client_goes_through_the_programme_in_two_instances_of_a_node(broker_kind: str, tmp_path: Path) -> None:
    if broker_kind != "kafkacompat":
        pytest.skip("instances are this broker's own")
    with running_instance_stages(tmp_path) as stages:
        for stage in stages:
            check_programme(stage, "confluent-kafka")


def check_programme(stage: AnyStage, name: str) -> list[str]:
    """Let a client do all that it can on this stage; return the steps that were reported."""
    steps: list[str] = []
    row_result = run_row(Row(name, name, FEATURES, ROWS[name]), [stage], steps.append)
    result: dict[str, Any] = row_result["brokers"][stage.kind]
    expected = {step: OK if step in FEATURES | ALWAYS else NOT_APPLICABLE for step in STEPS}
    assert {step: outcome for step, (outcome, _) in result["cells"].items()} == expected, result["cells"]
    assert result["wire"].endswith("magic 2")
    assert {"Produce", "Fetch", "JoinGroup", "OffsetCommit"} <= result["versions"].keys()
    return steps


def make_launch(text: str) -> Launch:
    return Launch([sys.executable, "-c", text])


def test_an_ended_driver_is_reported_with_its_last_line(tmp_path: Path) -> None:
    with (
        Driver(make_launch("raise SystemExit('no such client')"), "", tmp_path / "stderr") as driver,
        pytest.raises(ClientError, match="ended with code 1: no such client"),
    ):
        driver.ask("create", "topic", 1)


def test_a_program_that_says_nothing_is_given_up(tmp_path: Path) -> None:
    with (
        Driver(make_launch("import sys; sys.stdin.read()"), "", tmp_path / "stderr") as driver,
        pytest.raises(ClientError, match="no answer in 0 s, waiting for its end"),
    ):
        driver.ask("create", "topic", 1, seconds=0.2)
    assert not driver.is_running


def test_a_drivers_error_is_raised(tmp_path: Path) -> None:
    text = "print('noise'); print('{\"error\": \"refused\"}', flush=True); input()"
    with (
        Driver(make_launch(text), "", tmp_path / "stderr") as driver,
        pytest.raises(ClientError, match=r"^refused$"),
    ):
        driver.ask("create", "topic", 1)
