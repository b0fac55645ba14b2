"""Markers for the leaders in the image, and what their answers mean."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred, fail, succeed

from kafkacompat.metadata.image import ImageHolder, PartitionImage, TopicImage
from kafkacompat.storage.producers.transaction_marker import Marker
from kafkacompat.transactions.broker_queue import MOST_PARTITIONS
from kafkacompat.transactions.marker_sender import MarkerSender
from kafkacompat.transactions.markers import MarkerCodes, MarkerWriter
from kafkacompat.transactions.transaction import TopicPartition
from kafkacompat.wire.apis.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafkacompat.wire.errors import ErrorCode
from tests.fakes.marked_partitions import FakePartitions
from tests.kafkacompat.groups.support import TurningClock, take_response

MARKER = Marker(7, 3, 5, True, 2)
NONE = ErrorCode.NONE


class World:
    """Broker 1 of a cluster in which ``t-N`` is led by broker N."""

    def __init__(self, partitions: int = 4) -> None:
        self.partitions = FakePartitions()
        self.metadata = ImageHolder()
        led = (PartitionImage(index, index or -1, 0, (1, 2, 3), (1, 2, 3), 0) for index in range(partitions))
        topic = TopicImage("t", b"t" * 16, tuple(led))
        large = (PartitionImage(index, 2, 0, (1, 2, 3), (1, 2, 3), 0) for index in range(MOST_PARTITIONS + 1))
        self.metadata.publish(
            self.metadata.image.with_topics({"t": topic, "large": TopicImage("large", b"l" * 16, tuple(large))})
        )
        self.requests: list[tuple[int, WriteTxnMarkersRequest, float]] = []
        self.response: Deferred[Any] = Deferred()
        writer = MarkerWriter(TurningClock(), self.partitions.find, lambda *_: succeed(NONE))
        self.sender = MarkerSender(1, self.metadata, writer, self.send, 30_000)

    def send(self, node_id: int, purpose: str, request: Any, timeout_s: float) -> Deferred[Any]:
        self.requests.append((node_id, request, timeout_s))
        return self.response

    def write(self, *partitions: TopicPartition) -> list[Deferred[MarkerCodes]]:
        return list(self.sender.send(MARKER, partitions))


def make_answer(*codes: int, producer_id: int = 7) -> WriteTxnMarkersResponse:
    """A response with a code for t-2, t-3 …"""
    results = [
        WritableTxnMarkerPartitionResult(partition_index=index, error_code=code) for index, code in enumerate(codes, 2)
    ]
    topics = [WritableTxnMarkerTopicResult(name="t", partitions=results)]
    return WriteTxnMarkersResponse(markers=[WritableTxnMarkerResult(producer_id=producer_id, topics=topics)])


def test_a_marker_is_described_in_full() -> None:
    world = World()
    (waiting,) = world.write(("t", 2))
    ((node_id, request, timeout_s),) = world.requests
    assert (node_id, timeout_s) == (2, 30)
    (marker,) = request.markers
    assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (7, 3, 5)
    assert (marker.transaction_result, marker.transaction_version) == (True, 2)
    assert [(topic.name, topic.partition_indexes) for topic in marker.topics] == [("t", [2])]
    world.response.callback(make_answer(0))
    assert take_response(waiting) == {("t", 2): NONE}


def test_each_leader_answers_by_itself() -> None:
    world = World()
    codes: dict[TopicPartition, ErrorCode] = {}
    for sent in world.write(("t", 0), ("t", 1), ("t", 2), ("t", 3), ("unknown", 0)):
        sent.addCallback(codes.update)
    assert codes == {
        ("t", 0): ErrorCode.LEADER_NOT_AVAILABLE,
        ("t", 1): NONE,
        ("unknown", 0): NONE,
    }
    assert [node_id for node_id, _, _ in world.requests] == [2, 3]
    assert world.partitions.all["t", 1].markers == world.partitions.all["unknown", 0].markers == [MARKER]


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (make_answer(ErrorCode.NOT_LEADER_OR_FOLLOWER), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (make_answer(ErrorCode.TRANSACTION_COORDINATOR_FENCED), ErrorCode.TRANSACTION_COORDINATOR_FENCED),
        (make_answer(), ErrorCode.UNKNOWN_SERVER_ERROR),
        (make_answer(0, producer_id=8), ErrorCode.UNKNOWN_SERVER_ERROR),
        (make_answer(9999), ErrorCode.NETWORK_EXCEPTION),
        (ConnectionError("gone"), ErrorCode.NETWORK_EXCEPTION),
    ],
)
def test_an_answer_without_the_partition_is_no_success(
    response: WriteTxnMarkersResponse | Exception, code: ErrorCode
) -> None:
    world = World()
    world.response = fail(response) if isinstance(response, Exception) else succeed(response)
    (sent,) = world.write(("t", 2))
    assert take_response(sent) == {("t", 2): code}


def test_a_large_transaction_is_sent_in_pieces() -> None:
    world = World()
    first, second = world.write(*(("large", index) for index in range(MOST_PARTITIONS + 1)))
    sizes = []
    while not second.called:
        request = world.requests[-1][1]
        sizes.append(sum(len(topic.partition_indexes) for marker in request.markers for topic in marker.topics))
        world.response, sent = Deferred(), world.response
        sent.callback(make_answer())
    assert sizes == [MOST_PARTITIONS, 1]
    assert (len(take_response(first)), len(take_response(second))) == (MOST_PARTITIONS, 1)
