"""The times of requests and the errors of responses."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.task import Clock

from kafkacompat.metrics.errors import compile_error_finder
from kafkacompat.metrics.requests import RequestKind, RequestMetrics
from kafkacompat.wire.apis.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData, ReplicaState
from kafkacompat.wire.apis.heartbeat import HeartbeatResponse
from kafkacompat.wire.apis.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from kafkacompat.wire.connection import EncodedResponse, IncomingRequest

PRODUCE = RequestKind(0, 9, False)


START_S = 1000.0


def make_clock() -> Clock:
    clock = Clock()
    clock.advance(START_S)
    return clock


def make_incoming(api_key: int = 0, version: int = 9, body: Any = None) -> IncomingRequest:
    return IncomingRequest(api_key, version, 1, "client", body, 100)


def make_produce_response(*codes: int) -> ProduceResponse:
    partitions = [PartitionProduceResponse(index=index, error_code=code) for index, code in enumerate(codes)]
    return ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=partitions)])


def test_the_parts_of_a_request_that_waits() -> None:
    clock = make_clock()
    metrics = RequestMetrics(clock.seconds)
    watch, incoming = metrics.watch(), make_incoming()
    clock.advance(5)
    watch.begin(incoming, START_S + 2, clock.seconds())
    clock.advance(1)
    watch.note_wait(incoming)
    clock.advance(10)
    watch.note_answer(incoming, make_produce_response(0))
    clock.advance(0.5)
    watch.note_sent(0, is_drained=True)
    figures = metrics.find_figures(PRODUCE)
    parts = figures.queue, figures.local, figures.remote, figures.send, figures.total
    assert [part.sum_s for part in parts] == [3, 1, 10, 0.5, 14.5]
    assert figures.response_queue.count == 0 and figures.count == 1
    assert not figures.errors


def test_a_response_that_overtakes_waits_in_the_queue() -> None:
    clock = make_clock()
    metrics = RequestMetrics(clock.seconds)
    watch = metrics.watch()
    first, second = make_incoming(), make_incoming()
    for incoming in (first, second):
        watch.begin(incoming, START_S, START_S)
    watch.note_wait(first)
    watch.note_answer(second, make_produce_response(0))
    watch.note_sent(2, is_drained=True)
    clock.advance(4)
    watch.note_answer(first, make_produce_response(0))
    watch.note_sent(0, is_drained=True)
    figures = metrics.figures[PRODUCE]
    assert (figures.response_queue.sum_s, figures.send.sum_s, figures.count) == (4, 0, 2)
    assert figures.remote.sum_s == 4 and figures.remote.count == 1


def test_a_response_is_sent_once_the_socket_has_it() -> None:
    clock = make_clock()
    metrics = RequestMetrics(clock.seconds)
    watch, incoming = metrics.watch(), make_incoming()
    watch.begin(incoming, START_S, START_S)
    watch.note_answer(incoming, None)
    watch.note_sent(0, is_drained=False)
    assert metrics.figures[PRODUCE].count == 0 and watch.is_due
    clock.advance(3)
    watch.note_sent(0, is_drained=True)
    assert metrics.figures[PRODUCE].send.sum_s == 3 and not watch.is_due


def test_most_requests_are_prompt() -> None:
    clock = make_clock()
    metrics = RequestMetrics(clock.seconds)
    watch, incoming = metrics.watch(), make_incoming()
    watch.begin(incoming, START_S, START_S + 0.00005)
    clock.advance(0.002)
    watch.note_answer(incoming, make_produce_response(0))
    watch.note_sent(0, is_drained=True)
    figures = metrics.figures[PRODUCE]
    assert (figures.prompt.sum_s, figures.count, figures.total.count) == pytest.approx((0.002, 1, 0))
    watch.begin(incoming, START_S, START_S + 0.002)
    watch.note_answer(incoming, make_produce_response(0))
    watch.note_sent(0, is_drained=True)
    assert (figures.queue.sum_s, figures.local.sum_s, figures.total.sum_s) == pytest.approx((0.002, 0, 0.002))


def test_a_request_that_has_not_begun_is_left_out() -> None:
    metrics = RequestMetrics(lambda: START_S)
    watch = metrics.watch()
    watch.note_answer(make_incoming(), make_produce_response(6))
    assert not metrics.figures and not watch.is_due


def test_versions_of_one_connection_are_counted_apart() -> None:
    metrics = RequestMetrics(lambda: START_S)
    watch = metrics.watch()
    for version in (3, 9, 3):
        incoming = make_incoming(version=version)
        watch.begin(incoming, START_S, START_S)
        watch.note_answer(incoming, None)
        watch.note_sent(0, is_drained=True)
    assert {kind.version: figures.count for kind, figures in metrics.figures.items()} == {3: 2, 9: 1}


def test_followers_are_counted_apart_in_every_version() -> None:
    metrics = RequestMetrics(lambda: START_S)
    bodies = {
        11: [FetchRequest(replica_id=2), FetchRequest()],
        17: [FetchRequest(replica_state=ReplicaState(replica_id=2)), FetchRequest()],
    }
    for version, requests in bodies.items():
        for body in requests:
            watch, incoming = metrics.watch(), make_incoming(1, version, body)
            watch.begin(incoming, START_S, START_S)
            watch.note_answer(incoming, FetchResponse())
            watch.note_sent(0, is_drained=True)
    counts = {tuple(kind): figures.count for kind, figures in metrics.figures.items()}
    assert counts == {(1, 11, True): 1, (1, 11, False): 1, (1, 17, True): 1, (1, 17, False): 1}


def test_errors_are_found_wherever_they_are() -> None:
    find: Any = compile_error_finder
    assert find(ProduceResponse)(make_produce_response(0, 6, 0, 2)) == [6, 2]
    assert find(HeartbeatResponse)(HeartbeatResponse(error_code=27)) == [27]
    assert find(HeartbeatResponse)(HeartbeatResponse()) == []
    topic = FetchableTopicResponse(topic="t", partitions=[PartitionData(error_code=1), PartitionData()])
    assert sorted(find(FetchResponse)(FetchResponse(error_code=70, responses=[topic]))) == [1, 70]
    assert find(EncodedResponse)(EncodedResponse(data=b"")) == []
