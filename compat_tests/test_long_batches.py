"""Batches that take long to check: a process does it, while the broker answers other clients."""

from __future__ import annotations

import os
import signal

import pytest

from compat_tests import batches
from compat_tests.brokers import Broker
from compat_tests.conftest import MakeBroker
from compat_tests.processes import list_children, suspend_process
from compat_tests.raw_client import RawClient, produce_request
from compat_tests.test_conversion_processes import unread_bytes
from compat_tests.waiting import until
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kafkacompat.wire.apis.produce import PartitionProduceResponse, ProduceResponse
from kafkacompat.wire.errors import ErrorCode

TOPIC = "long"
MANY = 20_000
CLIENTS = 5
LIMIT_BYTES = 4 * 1024 * 1024


@pytest.fixture
def broker(make_broker: MakeBroker, broker_kind: str) -> Broker:
    """A broker with the topic, and a worker process that has nothing to do."""
    if broker_kind != "kafkacompat":
        pytest.skip("these are processes of ours")
    given = {"kafkacompat.conversion.processes": "1", "kafkacompat.decompressed.max.bytes": str(LIMIT_BYTES)}
    made = make_broker(given)
    with RawClient(made.port) as client:
        until(lambda: client.call(make_metadata_request(), MetadataResponse, 9).topics[0].error_code == 0)
        assert produce(client, batches.build([b"x"])).base_offset == 0
        assert list_children(made.pid) == []
        assert produce(client, make_long_batch()).base_offset == 1
        assert len(list_children(made.pid)) == 1
    return made


def make_metadata_request() -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=True)


def make_long_batch() -> bytes:
    return batches.build([b""] * MANY, codec=batches.ZSTD)


def produce(client: RawClient, batch: bytes) -> PartitionProduceResponse:
    return take_only_answer(client.call(produce_request(TOPIC, {0: batch}), ProduceResponse, 9))


def take_only_answer(answer: ProduceResponse) -> PartitionProduceResponse:
    (partition,) = answer.responses[0].partition_responses
    return partition


def test_others_are_answered_while_long_batches_wait_for_the_process(broker: Broker) -> None:
    (worker,) = list_children(broker.pid)
    long_ones = [RawClient(broker.port) for _ in range(CLIENTS)]
    suspend_process(worker)
    try:
        for client in long_ones:
            client.send(produce_request(TOPIC, {0: make_long_batch()}), 9)
        until(lambda: unread_bytes(worker) > 0)
        with RawClient(broker.port) as other:
            assert other.call(make_metadata_request(), MetadataResponse, 9).topics[0].error_code == 0
            assert produce(other, batches.build([b"x"])).base_offset == 1 + MANY
    finally:
        os.kill(worker, signal.SIGCONT)
    base_offsets = sorted(take_only_answer(client.receive(ProduceResponse, 9)).base_offset for client in long_ones)
    assert base_offsets == [2 + MANY * (1 + number) for number in range(CLIENTS)]
    for client in long_ones:
        client.__exit__()


def test_a_connections_next_request_does_not_overtake(broker: Broker) -> None:
    with RawClient(broker.port) as client:
        for batch in (make_long_batch(), batches.build([b"x"]), make_long_batch()):
            client.send(produce_request(TOPIC, {0: batch}), 9)
        base_offsets = [take_only_answer(client.receive(ProduceResponse, 9)).base_offset for _ in range(3)]
    assert base_offsets == [1 + MANY, 1 + 2 * MANY, 2 + 2 * MANY]


def test_a_bomb_is_refused_and_a_client_that_has_gone_does_no_harm(broker: Broker) -> None:
    bomb = batches.build([bytes(LIMIT_BYTES)], codec=batches.ZSTD)
    with RawClient(broker.port) as client:
        assert produce(client, bomb).error_code == ErrorCode.MESSAGE_TOO_LARGE
    with RawClient(broker.port) as gone:
        gone.send(produce_request(TOPIC, {0: make_long_batch()}), 9)
    with RawClient(broker.port) as client:
        until(lambda: produce(client, batches.build([b"x"])).base_offset > 2 * MANY)
    assert broker.stop() == 0


def test_a_process_that_dies_fails_one_answer(broker: Broker) -> None:
    (worker,) = list_children(broker.pid)
    suspend_process(worker)
    with RawClient(broker.port) as client:
        client.send(produce_request(TOPIC, {0: make_long_batch()}), 9)
        until(lambda: unread_bytes(worker) > 0)
        os.kill(worker, signal.SIGKILL)
        assert take_only_answer(client.receive(ProduceResponse, 9)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert produce(client, make_long_batch()).base_offset == 1 + MANY


def test_without_acks_a_stopping_broker_keeps_received_batches(broker: Broker) -> None:
    with RawClient(broker.port) as client:
        client.send(produce_request(TOPIC, {0: make_long_batch()}, acks=0), 9)
        assert produce(client, batches.build([b"x"])).base_offset == 1 + 2 * MANY
    assert broker.stop() == 0
