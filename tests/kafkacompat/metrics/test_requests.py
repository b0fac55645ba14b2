"""The times of requests and the errors of responses."""

from __future__ import annotations

from typing import Any

from twisted.internet.task import Clock

from kafkacompat.metrics.errors import compile_error_finder
from kafkacompat.metrics.requests import RequestMetrics
from kafkacompat.wire.apis.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData, ReplicaState
from kafkacompat.wire.apis.heartbeat import HeartbeatResponse
from kafkacompat.wire.apis.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from kafkacompat.wire.connection import EncodedResponse, IncomingRequest

PRODUCE = 0, 9, False


def make_incoming(api_key: int = 0, version: int = 9, body: Any = None) -> IncomingRequest:
    return IncomingRequest(api_key, version, 1, "client", body, 100)


def make_produce_response(*codes: int) -> ProduceResponse:
    partitions = [PartitionProduceResponse(index=index, error_code=code) for index, code in enumerate(codes)]
    return ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=partitions)])


def test_the_parts_of_a_request_that_waits() -> None:
    clock = Clock()
    metrics = RequestMetrics(clock.seconds)
    watch, incoming = metrics.watch(), make_incoming()
    clock.advance(5)
    watch.begin(incoming, 2.0, clock.seconds())
    clock.advance(1)
    watch.note_wait(incoming)
    clock.advance(10)
    watch.note_answer(incoming, make_produce_response(0))
    clock.advance(0.5)
    watch.note_sent(0, is_drained=True)
    figures = metrics.figures[PRODUCE]
    parts = figures.queue, figures.local, figures.remote, figures.send, figures.total
    assert [part.sum_s for part in parts] == [3, 1, 10, 0.5, 14.5]
    assert figures.response_queue.count == 0 and figures.count == 1
    assert not figures.errors


def test_a_response_that_overtakes_waits_in_the_queue() -> None:
    clock = Clock()
    metrics = RequestMetrics(clock.seconds)
    watch = metrics.watch()
    first, second = make_incoming(), make_incoming()
    for incoming in (first, second):
        watch.begin(incoming, 0.0, 0.0)
    watch.note_wait(first)
    watch.note_answer(second, make_produce_response(0))
    watch.note_sent(2, is_drained=True)
    clock.advance(4)
    watch.note_answer(first, make_produce_response(0))
    watch.note_sent(0, is_drained=True)
    figures = metrics.figures[PRODUCE]
    assert (figures.response_queue.sum_s, figures.send.sum_s, figures.count) == (4, 0, 2)


def test_a_response_is_sent_once_the_socket_has_it() -> None:
    clock = Clock()
    metrics = RequestMetrics(clock.seconds)
    watch, incoming = metrics.watch(), make_incoming()
    watch.begin(incoming, 0.0, 0.0)
    watch.note_answer(incoming, None)
    watch.note_sent(0, is_drained=False)
    assert not metrics.figures
    clock.advance(3)
    watch.note_sent(0, is_drained=True)
    assert metrics.figures[PRODUCE].send.sum_s == 3


def test_followers_are_counted_apart_in_every_version() -> None:
    metrics = RequestMetrics(lambda: 0.0)
    bodies = {
        11: [FetchRequest(replica_id=2), FetchRequest()],
        17: [FetchRequest(replica_state=ReplicaState(replica_id=2)), FetchRequest()],
    }
    for version, requests in bodies.items():
        for body in requests:
            watch, incoming = metrics.watch(), make_incoming(1, version, body)
            watch.begin(incoming, 0.0, 0.0)
            watch.note_answer(incoming, FetchResponse())
            watch.note_sent(0, is_drained=True)
    assert set(metrics.figures) == {(1, 11, True), (1, 11, False), (1, 17, True), (1, 17, False)}


def test_errors_are_found_wherever_they_are() -> None:
    find: Any = compile_error_finder
    assert find(ProduceResponse)(make_produce_response(0, 6, 0, 2)) == [6, 2]
    assert find(HeartbeatResponse)(HeartbeatResponse(error_code=27)) == [27]
    assert find(HeartbeatResponse)(HeartbeatResponse()) == []
    topic = FetchableTopicResponse(topic="t", partitions=[PartitionData(error_code=1), PartitionData()])
    assert sorted(find(FetchResponse)(FetchResponse(error_code=70, responses=[topic]))) == [1, 70]
    assert find(EncodedResponse)(EncodedResponse(data=b"")) == []
