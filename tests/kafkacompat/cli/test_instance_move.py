"""`kafkacompat instances move`, against a cluster that answers from memory."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner, Result

from kafkacompat.cli import main
from kafkacompat.config.broker_groups import GROUPS, MAX_BROKERS
from tests.kafkacompat.cli.cluster.test_spread_run import CONTROLLER, TOPIC, MovingCluster

ADOPTED = {"cluster.id": "c", "topic.names": TOPIC, "placement.group": "a"}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> MovingCluster:
    """Four brokers in two groups; the instance shop has adopted the topic and lives in the first group."""
    cluster = MovingCluster([[1, 2], [2, 1]], brokers=4)
    cluster.configs = {"shop": dict(ADOPTED), str(CONTROLLER): {GROUPS: "a:1-2,b:3-4,c:5-6", MAX_BROKERS: "9"}}

    def connect(host: str, port: int, security: Any) -> Any:
        return cluster.connect(host, port)

    monkeypatch.setattr("kafkacompat.cli.requests.BlockingConnection", connect)
    monkeypatch.setattr("kafkacompat.cli.cluster.grow.pause", cluster.pause)
    return cluster


def run(*arguments: str, address: str = "h:1") -> Result:
    return CliRunner().invoke(main, ["instances", "move", "--bootstrap-server", address, "--instance", *arguments])


def test_an_instance_moves_to_another_group(cluster: MovingCluster) -> None:
    result = run("shop", "--to", "b", "--throttle", "1000")
    assert result.exit_code == 0, result.output
    assert [set(replicas) for replicas in cluster.replicas] == [{3, 4}, {3, 4}]
    assert cluster.configs["shop"]["placement.group"] == "b"
    assert cluster.throttles_while_moving["shop"]["placement.group"] == "a,b"
    assert "leader.replication.throttled.rate" in cluster.throttles_while_moving["3"]
    assert not any("throttled" in name for configs in cluster.configs.values() for name in configs)
    assert "Moved 4 replicas" in result.stderr
    assert result.stderr.endswith("The instance shop lives in the group b\n")


def test_a_dry_run_changes_nothing(cluster: MovingCluster) -> None:
    result = run("shop", "--to", "b", "--dry-run")
    assert result.exit_code == 0, result.output
    assert "4 replicas move" in result.stdout
    assert cluster.replicas == [[1, 2], [2, 1]]
    assert cluster.configs["shop"] == ADOPTED
    assert "nothing moves" in run("shop", "--to", "a", "--dry-run").stdout


@pytest.mark.parametrize(
    ("arguments", "address", "code", "sentence"),
    [
        (("shop", "--to", "d"), "h:1", 1, "there is no group of brokers d"),
        (("shop", "--to", "c"), "h:1", 1, "the group c is too small for the instance shop"),
        (("a.b", "--to", "b"), "h:1", 1, "the instance name 'a.b' is not valid"),
        (("shop", "--to", "b"), "h:9", 2, "no broker answers"),
        (("shop", "--to", "b"), "h", 2, "is not of the form HOST:PORT"),
    ],
)
def test_a_move_that_cannot_be_is_one_sentence(
    cluster: MovingCluster, arguments: tuple[str, ...], address: str, code: int, sentence: str
) -> None:
    result = run(*arguments, address=address)
    assert result.exit_code == code
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert cluster.configs["shop"] == ADOPTED
