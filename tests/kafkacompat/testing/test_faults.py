"""The faults and the clock of brokers in the thread of the brokers, for clients over real sockets."""

from __future__ import annotations

import time
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

import kafkacompat.testing
from kafkacompat.client.connections import BrokerConnections
from kafkacompat.client.settings import BrokerAddress, ConnectionSettings
from kafkacompat.faults import FaultError
from kafkacompat.network import ReactorNetwork
from kafkacompat.server.transport import ZeroCopyConnector, make_zero_copy_port
from kafkacompat.testing.reactor_thread import get_reactor_thread
from kafkacompat.testing.running import RunningCluster, RunningKafka
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest
from kafkacompat.wire.apis.describe_cluster import DescribeClusterRequest
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.schema import Request
from tests.kafkacompat.faults.world import make_produce

WITHIN_S = 10


class Client:
    """Sends requests to the brokers of a test over their sockets, as any client does."""

    def __init__(self, kafka: RunningKafka) -> None:
        self._kafka = kafka
        reactor = get_reactor_thread().reactor
        network = ReactorNetwork(reactor, make_zero_copy_port(), ZeroCopyConnector)
        self._connections = BrokerConnections(ConnectionSettings("client"), network, reactor, Random(1))

    def ask(self, kafka: RunningCluster, broker_id: int, request: Request) -> Any:
        """Return the response of a broker."""
        ((host, port),) = kafka.brokers[broker_id].listeners.bound.values()
        address = BrokerAddress(broker_id, host, port)
        return kafka.call(lambda: self._connections.request(address, "requests", request, timeout_s=WITHIN_S))

    def produce(self, kafka: RunningCluster, broker_id: int, topic: str) -> int:
        """Produce a record to partition 0 by a broker; return the error code."""
        request = make_produce("", 0)
        request.topic_data[0].topic_id = kafka.brokers[broker_id].metadata.image.topics[topic].topic_id
        answer = self.ask(kafka, broker_id, request)
        return int(answer.responses[0].partition_responses[0].error_code)

    def close(self) -> None:
        self._kafka.call(self._connections.close)


@pytest.fixture(scope="module")
def kafka() -> Iterator[RunningCluster]:
    with kafkacompat.testing.cluster(2) as running:
        yield running


@pytest.fixture
def client(kafka: RunningCluster) -> Iterator[Client]:
    opened = Client(kafka)
    yield opened
    opened.close()
    kafka.faults.clear()


def find_leader(kafka: RunningCluster, topic: str) -> int:
    partition = kafka.brokers[1].metadata.image.partition(topic, 0)
    assert partition is not None
    return partition.leader


def test_rules_are_for_all_brokers_of_a_cluster(kafka: RunningCluster, client: Client) -> None:
    kafka.create_topic("t", replicas=2)
    number = kafka.faults.add(api="Produce", topic="t", error="KAFKA_STORAGE_ERROR", times=2)
    codes = [client.produce(kafka, broker_id, "t") for broker_id in (1, 2, 1, 2)]
    assert codes[:2] == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
    assert sorted(codes[2:]) == [0, ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert kafka.faults.counts[number] == (4, 2)
    assert kafka.faults.list()[0]["applied"] == 2
    kafka.faults.remove(number)
    assert kafka.faults.list() == []
    with pytest.raises(FaultError, match="no error of this name"):
        kafka.faults.add(error="NOT_LEADER")
    # The helpers of the test are not clients: they see no fault.
    kafka.faults.add(topic="t", error="KAFKA_STORAGE_ERROR")
    kafka.produce("t", ["by a helper"])


def test_responses_that_the_controller_has_encoded_are_changed_too(kafka: RunningCluster, client: Client) -> None:
    kafka.faults.add(api="CreateTopics", topic="made-*", error="POLICY_VIOLATION", carry_out=True)
    for broker_id in (1, 2):
        names = [f"made-{broker_id}", f"other-{broker_id}"]
        wanted = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
        answer = client.ask(kafka, broker_id, CreateTopicsRequest(topics=wanted, timeout_ms=10_000))
        assert [topic.error_code for topic in answer.topics] == [ErrorCode.POLICY_VIOLATION, 0]
    kafka.faults.clear()
    kafka.faults.add(api="DescribeCluster", throttle_ms=10)
    kafka.faults.add(api="CreateTopics", topic="late-1", error="INVALID_CONFIG")
    for broker_id in (1, 2):
        names = ["late-1", f"late-1-{broker_id}"]
        wanted = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
        answer = client.ask(kafka, broker_id, CreateTopicsRequest(topics=wanted, timeout_ms=10_000))
        codes = {topic.name: topic.error_code for topic in answer.topics}
        assert codes == {"late-1": ErrorCode.INVALID_CONFIG, names[1]: 0}
        assert client.ask(kafka, broker_id, DescribeClusterRequest()).throttle_time_ms == 10
    topics = kafka.brokers[1].metadata.image.topics
    assert "late-1" not in topics and {"made-1", "made-2"} <= topics.keys()


def test_a_rule_moves_a_leader(kafka: RunningCluster, client: Client) -> None:
    kafka.create_topic("moving", replicas=2)
    leader = find_leader(kafka, "moving")
    kafka.faults.add(api="Produce", topic="moving", partition=0, move_leader=True)
    assert client.produce(kafka, leader, "moving") in (0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    deadline = time.monotonic() + WITHIN_S
    while find_leader(kafka, "moving") == leader:
        assert time.monotonic() < deadline, "the leader was not moved"
        client.produce(kafka, leader, "moving")
    assert client.produce(kafka, 3 - leader, "moving") == 0


def test_the_clock_of_a_cluster_is_advanced_and_its_replicas_stay_in_sync(
    kafka: RunningCluster, client: Client
) -> None:
    kafka.create_topic("timed", replicas=2)
    before_ms = kafka.clock.now_ms
    kafka.clock.advance(hours=25)
    assert 0 <= kafka.clock.now_ms - before_ms - 25 * 3_600_000 < 60_000
    for broker in kafka.brokers.values():
        partition = broker.metadata.image.partition("timed", 0)
        assert partition is not None
        assert sorted(partition.in_sync_replicas) == [1, 2]
    assert client.produce(kafka, find_leader(kafka, "timed"), "timed") == 0


def test_records_begin_where_retention_has_moved_the_start(kafka: RunningCluster) -> None:
    kafka.create_topic("kept", retention_ms=3_600_000)
    kafka.produce("kept", ["old"])
    kafka.clock.advance(hours=2)
    kafka.produce("kept", ["new"])
    assert [record.value for record in kafka.records("kept")] == [b"new"]
