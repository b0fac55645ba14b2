"""Apache Kafka 4.3.1's tools for log directories, reassignments, elections, the quorum, transactions and groups."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from compat_tests import batches
from compat_tests.brokers import Broker
from compat_tests.conftest import MakeBroker
from compat_tests.java_tools import run_java
from compat_tests.raw_client import produce_request
from compat_tests.same_answers.transcript import Transcript
from compat_tests.test_java_tools import CONSOLE_CONSUMER, CONSUMER_GROUPS, TOOLS, run_tool
from compat_tests.waiting import until
from kafkacompat.wire.apis.produce import ProduceResponse

LOG_DIRS = f"{TOOLS}.LogDirsCommand"
REASSIGN = f"{TOOLS}.reassign.ReassignPartitionsCommand"
QUORUM = f"{TOOLS}.MetadataQuorumCommand"
TRANSACTIONS = f"{TOOLS}.TransactionsCommand"


@pytest.fixture
def two_directories(make_broker: MakeBroker, tmp_path: Path) -> Broker:
    """A broker that has somewhere to move partitions to."""
    return make_broker({"log.dirs": f"{tmp_path / 'a'},{tmp_path / 'b'}"})


def make_topic(broker: Broker, name: str, producer_id: int = -1) -> None:
    """A topic with two records, of a producer in epoch 3 if it has an id."""
    with closing(Transcript(broker.port)) as script:
        script.create_topic(name)
        epoch, sequence = (-1, -1) if producer_id < 0 else (3, 0)
        batch = batches.build([b"a", b"b"], producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
        script.ask("fill", produce_request(name, {0: batch}), ProduceResponse, 9)


def describe_directories(broker: Broker, topic: str) -> dict[str, list[dict[str, Any]]]:
    """Return the output of kafka-log-dirs.sh about a topic, by directory."""
    output = run_tool(broker, LOG_DIRS, "--describe", "--topic-list", topic)
    described = json.loads(next(line for line in output.splitlines() if line.startswith("{")))
    return {directory["logDir"]: directory["partitions"] for directory in described["brokers"][0]["logDirs"]}


def test_a_partition_is_moved_to_another_log_directory(two_directories: Broker, name: str, tmp_path: Path) -> None:
    broker = two_directories
    make_topic(broker, name)
    before = describe_directories(broker, name)
    home = next(path for path, partitions in before.items() if partitions)
    other = next(path for path in before if path != home)
    plan = tmp_path / "plan.json"
    partition = {"topic": name, "partition": 0, "replicas": [1], "log_dirs": [other]}
    plan.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    chosen = ("--reassignment-json-file", str(plan))
    executed = run_tool(broker, REASSIGN, "--execute", *chosen)
    assert f"Successfully started moving log directory to {other} for replica {name}-0 with broker 1" in executed
    moved = f"Reassignment of replica {name}-0-1 completed successfully."
    until(lambda: moved in run_tool(broker, REASSIGN, "--verify", *chosen))
    (replica,) = describe_directories(broker, name)[other]
    assert (replica["partition"], replica["offsetLag"], replica["isFuture"]) == (f"{name}-0", 0, False)
    assert replica["size"] > 0
    cancelled = run_tool(broker, REASSIGN, "--cancel", *chosen)
    assert "None of the specified partition reassignments are active." in cancelled


def test_reassignments_are_generated_and_listed(broker: Broker, name: str, tmp_path: Path) -> None:
    make_topic(broker, name)
    wanted = tmp_path / "topics.json"
    wanted.write_text(json.dumps({"version": 1, "topics": [{"topic": name}]}))
    generated = run_tool(
        broker, REASSIGN, "--generate", "--topics-to-move-json-file", str(wanted), "--broker-list", "1"
    ).splitlines()
    proposed = json.loads(generated[generated.index("Proposed partition reassignment configuration") + 1])
    assert proposed["partitions"] == [{"topic": name, "partition": 0, "replicas": [1], "log_dirs": ["any"]}]
    assert "No partition reassignments found." in run_tool(broker, REASSIGN, "--list")


def test_a_leader_that_leads_is_not_elected(broker: Broker, name: str) -> None:
    make_topic(broker, name)
    election = ("--election-type", "preferred", "--topic", name, "--partition", "0")
    output = run_tool(broker, f"{TOOLS}.LeaderElectionCommand", *election)
    assert f"Valid replica already elected for partitions {name}-0" in output


def test_the_quorum_is_described(broker: Broker) -> None:
    status = run_tool(broker, QUORUM, "describe", "--status")
    assert re.search(r"^LeaderId:\s+1$", status, re.MULTILINE)
    assert re.search(r"^MaxFollowerLag:\s+0$", status, re.MULTILINE)
    (leader,) = re.findall(r"^1\s.*$", run_tool(broker, QUORUM, "describe", "--replication"), re.MULTILINE)
    assert leader.split()[-1] == "Leader"


def test_transactions_and_producers_are_listed(broker: Broker, name: str) -> None:
    make_topic(broker, name, producer_id=4242)
    assert run_tool(broker, TRANSACTIONS, "list").startswith("TransactionalId")
    described = run_tool(broker, TRANSACTIONS, "describe-producers", "--topic", name, "--partition", "0").splitlines()
    assert [line.split()[:4] for line in described[1:]] == [["4242", "3", "-1", "1"]]


@pytest.mark.tools
def test_groups_are_listed_by_type_and_state_and_lose_offsets(broker: Broker, name: str) -> None:
    make_topic(broker, name)
    read = ("--from-beginning", "--max-messages", "2", "--timeout-ms", "20000", "--group", name)
    run_tool(broker, CONSOLE_CONSUMER, "--topic", name, *read)
    listed = run_tool(broker, CONSUMER_GROUPS, "--list", "--state", "empty")
    assert re.search(rf"^{name}\s+Empty", listed, re.MULTILINE)
    assert re.search(
        rf"^{name}\s+Classic\s+consumer", run_tool(broker, f"{TOOLS}.GroupsCommand", "--list"), re.MULTILINE
    )
    state = run_tool(broker, CONSUMER_GROUPS, "--describe", "--group", name, "--state")
    assert re.search(rf"^{name}\s+127.0.0.1:{broker.port}\s+\(1\)\s+-\s+Empty\s+0", state, re.MULTILINE)
    deleted = run_tool(broker, CONSUMER_GROUPS, "--delete-offsets", "--group", name, "--topic", name)
    assert re.search(rf"^{name}\s+0\s+Successful", deleted, re.MULTILINE)
    gone = ["--bootstrap-server", broker.bootstrap, "--describe", "--group", name + "-absent"]
    refused = run_java(CONSUMER_GROUPS, gone, check=False)
    assert re.search(rf"GroupIdNotFoundException: .*{name}-absent", refused.stdout + refused.stderr)
