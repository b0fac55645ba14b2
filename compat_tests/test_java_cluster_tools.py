"""The tools of Apache Kafka 4.3.1 that look after replicas, transactions, groups of all kinds and the quorum."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from compat_tests.brokers import Broker
from compat_tests.group_members import ConfluentMember
from compat_tests.test_java_tools import TOOLS, console_produce, create_topic, run_failing_tool, run_tool
from compat_tests.waiting import until

pytestmark = pytest.mark.tools

ELECTION = f"{TOOLS}.LeaderElectionCommand"
REASSIGN = f"{TOOLS}.reassign.ReassignPartitionsCommand"
TRANSACTIONS = f"{TOOLS}.TransactionsCommand"
CONSUMER_GROUPS = f"{TOOLS}.consumer.group.ConsumerGroupCommand"


def test_log_directories(broker: Broker, name: str) -> None:
    create_topic(broker, name)
    console_produce(broker, name, ["a"])
    output = run_tool(broker, f"{TOOLS}.LogDirsCommand", "--describe", "--topic-list", name)
    (folder,) = json.loads(output.splitlines()[-1])["brokers"][0]["logDirs"]
    assert (folder["error"], folder["logDir"]) == (None, str(broker.data_folder))
    (partition,) = folder["partitions"]
    assert (partition["partition"], partition["offsetLag"], partition["isFuture"]) == (f"{name}-0", 0, False)
    assert partition["size"] > 0


def test_elections(broker: Broker, name: str) -> None:
    create_topic(broker, name)
    partition = ("--topic", name, "--partition", "0")
    for kind in ("preferred", "unclean"):
        elected = run_tool(broker, ELECTION, "--election-type", kind, *partition)
        assert elected.strip() == f"Valid replica already elected for partitions {name}-0"
    assert run_tool(broker, ELECTION, "--election-type", "preferred", "--all-topic-partitions").strip() == ""


def test_reassignments(broker: Broker, name: str, tmp_path: Path) -> None:
    create_topic(broker, name)
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": name, "partition": 0, "replicas": [1]}]}))
    file = ("--reassignment-json-file", str(plan))
    started = run_tool(broker, REASSIGN, *file, "--execute")
    assert f"Successfully started partition reassignment for {name}-0" in started
    assert json.dumps(str(broker.data_folder)) in started
    assert f"Reassignment of partition {name}-0 is completed." in run_tool(broker, REASSIGN, *file, "--verify")
    assert "No partition reassignments found." in run_tool(broker, REASSIGN, "--list")


def test_the_quorum(broker: Broker) -> None:
    quorum = f"{TOOLS}.MetadataQuorumCommand"
    status = run_tool(broker, quorum, "describe", "--status")
    assert re.search(r"^LeaderId:\s+1$", status, re.MULTILINE)
    assert re.search(r'^CurrentVoters:\s+\[\{"id": 1', status, re.MULTILINE)
    assert re.search(
        r"^1\s+\S+\s+\d+\s+0\s.*Leader", run_tool(broker, quorum, "describe", "--replication"), re.MULTILINE
    )


def test_transactions(broker: Broker, name: str) -> None:
    create_topic(broker, name)
    console_produce(broker, name, ["a", "b"])
    assert run_tool(broker, TRANSACTIONS, "list").startswith(
        "TransactionalId\tCoordinator\tProducerId\tTransactionState"
    )
    part = ("--topic", name, "--partition", "0")
    header, producer = run_tool(broker, TRANSACTIONS, "describe-producers", *part).splitlines()
    shown = dict(zip(header.split(), producer.split(), strict=True))
    assert (shown["LastSequence"], shown["CurrentTransactionStartOffset"]) == ("1", "None")
    assert len(run_tool(broker, TRANSACTIONS, "find-hanging", "--broker-id", "1").splitlines()) == 1
    assert f"of transactional-id `{name}`" in run_failing_tool(
        broker, TRANSACTIONS, "describe", "--transactional-id", name
    )


def test_groups_of_every_kind(broker: Broker, name: str) -> None:
    create_topic(broker, name)
    console_produce(broker, name, ["a"])
    read = ("--from-beginning", "--max-messages", "1", "--timeout-ms", "20000", "--group", name)
    run_tool(broker, f"{TOOLS}.consumer.ConsoleConsumer", "--topic", name, *read)
    assert re.search(
        rf"^{name}\s+Classic\s+consumer", run_tool(broker, f"{TOOLS}.GroupsCommand", "--list"), re.MULTILINE
    )
    listed = run_tool(broker, CONSUMER_GROUPS, "--list", "--state", "--type")
    assert re.search(rf"^{name}\s+Classic\s+Empty", listed, re.MULTILINE)
    deleted = run_tool(broker, CONSUMER_GROUPS, "--delete-offsets", "--group", name, "--topic", name)
    assert re.search(rf"^{name}\s+0\s+Successful", deleted, re.MULTILINE)
    for other in ("consumer.group.ShareGroupCommand", "streams.StreamsGroupCommand"):
        assert run_tool(broker, f"{TOOLS}.{other}", "--list").strip() == ""


def test_a_consumer_group_and_its_members(broker: Broker, name: str) -> None:
    create_topic(broker, name, partitions=3)
    console_produce(broker, name, ["a", "b"])
    member = ConfluentMember(broker, name, **{"client.id": "mine"})
    member.subscribe(name)
    until(lambda: member.poll() and member.assignment() == {(name, number) for number in range(3)}, every_seconds=0)
    member.commit()
    group = ("--group", name)
    state = run_tool(broker, CONSUMER_GROUPS, "--describe", *group, "--state", "--verbose").split()
    assert {"uniform", "Stable"} < set(state)
    members = run_tool(broker, CONSUMER_GROUPS, "--describe", *group, "--members", "--verbose")
    assert re.search(rf"^{name}\s+\S+\s+/127.0.0.1\s+mine\s+3\s", members, re.MULTILINE)
    assert f"{name}:0,1,2" in members
    offsets = run_tool(broker, CONSUMER_GROUPS, "--describe", *group)
    assert len(re.findall(rf"^{name}\s+{name}\s+[012]\s.*mine", offsets, re.MULTILINE)) == 3
    listed = run_tool(broker, CONSUMER_GROUPS, "--list", "--state", "--type", "consumer")
    assert re.search(rf"^{name}\s+Consumer\s+Stable", listed, re.MULTILINE)
    assert "GroupNotEmptyException" in run_tool(broker, CONSUMER_GROUPS, "--delete", *group)
    member.close()
    reset = (*group, "--reset-offsets", "--topic", name, "--to-earliest", "--execute")
    assert (
        len(re.findall(rf"^{name}\s+{name}\s+[012]\s+0", run_tool(broker, CONSUMER_GROUPS, *reset), re.MULTILINE)) == 3
    )
    assert "was successful" in run_tool(broker, CONSUMER_GROUPS, "--delete", *group)


def test_streams_resetter(broker: Broker, name: str) -> None:
    create_topic(broker, name)
    output = run_tool(broker, f"{TOOLS}.StreamsResetter", "--application-id", name, "--input-topics", name)
    assert f"Topic: {name} Partition: 0 Offset: 0" in output and output.splitlines()[-1] == "Done."


def test_verifiable_tools_and_latency(broker: Broker, name: str) -> None:
    create_topic(broker, name)
    target = ("--topic", name)
    sent = run_tool(broker, f"{TOOLS}.VerifiableProducer", *target, "--max-messages", "5").splitlines()
    assert json.loads(sent[-1])["acked"] == 5
    wanted = ("--group-id", name, "--max-messages", "5", "--reset-policy", "earliest")
    events = [
        json.loads(line) for line in run_tool(broker, f"{TOOLS}.VerifiableConsumer", *target, *wanted).splitlines()
    ]
    assert [event["offsets"][0]["offset"] for event in events if event["name"] == "offsets_committed"][-1] == 5
    load = ("--num-records", "20", "--producer-acks", "1", "--record-size", "50")
    assert "Percentiles: 50th = " in run_tool(broker, f"{TOOLS}.EndToEndLatency", *target, *load)
