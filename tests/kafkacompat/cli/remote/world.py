"""A whole broker on one clock, and the commands for any cluster, which reach it without a socket."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kafkacompat.cli import main
from kafkacompat.cli.remote import running
from kafkacompat.cli.remote.cluster import RemoteCluster
from kafkacompat.wire.apis.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafkacompat.wire.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkacompat.wire.apis.find_coordinator import FindCoordinatorRequest
from kafkacompat.wire.apis.init_producer_id import InitProducerIdRequest
from kafkacompat.wire.apis.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkacompat.wire.apis.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kafkacompat.wire.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    write_assignment,
    write_subscription,
)
from kafkacompat.wire.schema import Request
from tests.kafkacompat.test_broker_over_memory_network import HOST, PORT, World

SERVER = f"{HOST}:{PORT}"


def run_command(*arguments: str, stdin: str | None = None) -> Result:
    """Run a command such as `topics list`."""
    return CliRunner().invoke(main, [*arguments, "--bootstrap-server", SERVER], input=stdin, catch_exceptions=False)


def misuse(*arguments: str) -> str:
    """Run the command, whose options must not be valid, without a broker; return the last line, which says why."""
    result = run_command(*arguments)
    assert result.exit_code == 2, (result.exit_code, result.output)
    return result.stderr.splitlines()[-1].removeprefix("Error: ")


class Connection:
    """A connection of a command, whose requests turn the clock of the broker."""

    def __init__(self, world: World) -> None:
        self._world = world

    def find_version(self, request: type[Request]) -> int | None:
        return request.VERSIONS.last

    def request(self, request: Request, response: Any) -> Any:
        answer = self._world.ask(request)
        assert isinstance(answer, response)
        return answer

    def close(self) -> None:
        """Nothing to close."""


class RemoteWorld(World):
    """A started broker with the commands, and clients of its groups and transactions."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, properties: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(folder, {"transaction.state.log.num.partitions": "1", **(properties or {})})
        self.run(self.broker.start())

        monkeypatch.setattr(running, "connect_cluster", lambda _: self.connect_cluster())

    def connect_cluster(self) -> RemoteCluster:
        """Return what commands send their requests through."""

        def connect(host: str, port: int) -> Connection:
            assert (host, port) == (HOST, PORT)
            return Connection(self)

        def wait(seconds: float) -> None:
            self.clock.pump([0.01] * int(seconds * 100))

        return RemoteCluster([(HOST, PORT)], connect, wait)

    def succeed(self, *arguments: str, stdin: str | None = None) -> Result:
        """Run the command, which must succeed."""
        result = run_command(*arguments, stdin=stdin)
        assert result.exit_code == 0, result.output
        return result

    def read(self, *arguments: str) -> Any:
        """Run the command with --json, and return what it writes to standard output."""
        return json.loads(self.succeed(*arguments, "--json").stdout)

    def refuse(self, *arguments: str) -> str:
        """Run the command, which the cluster must refuse; return its one sentence."""
        result = run_command(*arguments)
        assert result.exit_code == 1, (result.exit_code, result.output)
        (line,) = result.stderr.splitlines()
        return line.removeprefix("kafkacompat: ")

    # Clients

    def fill(self, topic: str, count: int) -> None:
        """Create a topic of one partition with records, one a second."""
        topic_id = self.make_topic(topic)
        for number in range(count):
            self.produce(topic, topic_id, b"%d" % number)
            self.clock.advance(1)

    def join_classic_group(self, group: str, topic: str) -> str:
        """Become the one member of a group of the classic protocol; return its id."""
        metadata = write_subscription(ConsumerProtocolSubscription(topics=[topic]), 0)
        joining = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
        )
        joining.member_id = self.ask(joining).member_id
        joined = self.ask(joining)
        assigned = ConsumerProtocolAssignment(assigned_partitions=[TopicPartition(topic=topic, partitions=[0])])
        assignment = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=write_assignment(assigned, 0))
        syncing = SyncGroupRequest(
            group_id=group, generation_id=joined.generation_id, member_id=joined.member_id, assignments=[assignment]
        )
        syncing.protocol_type, syncing.protocol_name = "consumer", "range"
        assert self.ask(syncing).error_code == 0
        return str(joined.member_id)

    def join_consumer_group(self, group: str, topic: str) -> str:
        """Become the one member of a group of the consumer protocol; return its id."""
        beat = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id="member-1",
            rebalance_timeout_ms=30_000,
            subscribed_topic_names=[topic],
            topic_partitions=[],
        )
        joined = self.ask(beat)
        assert joined.error_code == 0, joined
        return str(joined.member_id)

    def begin_transaction(self, transactional_id: str, topic: str) -> int:
        """Begin a transaction in a topic of one partition; return the producer's id."""
        finding = FindCoordinatorRequest(key_type=1, coordinator_keys=[transactional_id])
        # The first search creates the coordinator's topic.
        while self.ask(finding).coordinators[0].error_code:
            self.clock.advance(0.1)
        producer = self.ask(InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000))
        assert producer.error_code == 0, producer
        adding = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            topics=[AddPartitionsToTxnTopic(name=topic, partitions=[0])],
        )
        assert self.ask(AddPartitionsToTxnRequest(transactions=[adding])).error_code == 0
        return int(producer.producer_id)
