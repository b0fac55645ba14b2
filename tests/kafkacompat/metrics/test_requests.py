"""The times of requests and the errors of responses."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.task import Clock

from kafkacompat.metrics.errors import compile_error_finder
from kafkacompat.metrics.requests import EVERY, MEASURED, WINDOW_S, RequestKind, RequestMetrics, count_waiting
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
    assert not metrics.errors


def test_a_response_that_overtakes_waits_in_the_queue() -> None:
    clock = make_clock()
    metrics = RequestMetrics(clock.seconds)
    watch = metrics.watch()
    first, second = make_incoming(), make_incoming()
    for incoming in (first, second):
        watch.begin(incoming, START_S, START_S)
        if incoming is first:
            watch.note_wait(first)
    watch.note_answer(second, make_produce_response(0))
    watch.note_sent(2, is_drained=True)
    assert watch.is_due
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
    assert metrics.figures[PRODUCE].total.count == 0 and watch.is_due
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


def test_errors_are_counted_by_api() -> None:
    metrics = RequestMetrics(lambda: START_S)
    watch = metrics.watch()
    for incoming, response in (
        (make_incoming(), make_produce_response(6)),  # Produce counts its own
        (make_incoming(12, 4), HeartbeatResponse(error_code=27)),
        (make_incoming(1, 11, FetchRequest(replica_id=2)), FetchResponse(error_code=70)),
    ):
        watch.begin(incoming, START_S, START_S)
        watch.note_answer(incoming, response)
    metrics.note_produce_error(2)
    assert metrics.errors == {(12, False, 27): 1, (1, True, 70): 1, (0, False, 2): 1}


def test_of_many_prompt_requests_some_stand_for_all() -> None:
    clock = make_clock()
    metrics = RequestMetrics(clock.seconds)
    watch = metrics.watch()
    for number in range(MEASURED + 1000 * EVERY):
        incoming, now_s = make_incoming(), clock.seconds()
        watch.begin(incoming, now_s, now_s)
        assert (incoming.trace is None) == (number >= 2 * MEASURED and (number - 2 * MEASURED) % EVERY != EVERY - 1)
        watch.note_answer(incoming, None)
        if watch.is_due:
            watch.note_sent(0, is_drained=True)
    figures = metrics.figures[PRODUCE]
    assert figures.count == MEASURED + 1000 * EVERY
    assert figures.prompt.count == pytest.approx(figures.count, abs=EVERY)
    clock.advance(WINDOW_S)
    watch.begin(incoming := make_incoming(), clock.seconds(), clock.seconds())
    assert incoming.trace.weight == 1


def test_every_request_that_waits_is_measured() -> None:
    clock = make_clock()
    metrics = RequestMetrics(clock.seconds)
    watch = metrics.watch()
    requests = [make_incoming(1, 11, FetchRequest()) for _ in range(500)]
    for number, incoming in enumerate(requests):
        watch.begin(incoming, clock.seconds(), clock.seconds())
        watch.note_wait(incoming)
        assert count_waiting([watch]) == {1: number + 1}
    clock.advance(2)
    for left, incoming in enumerate(requests, 1):
        watch.note_answer(incoming, FetchResponse())
        watch.note_sent(len(requests) - left, is_drained=True)
    (figures,) = metrics.figures.values()
    assert (figures.remote.count, figures.remote.sum_s, figures.count) == (500, 1000, 500)
    assert not watch.traces


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
    counts = {tuple(kind): (figures.count, figures.prompt.count) for kind, figures in metrics.figures.items()}
    assert counts == dict.fromkeys([(1, 11, True), (1, 11, False), (1, 17, True), (1, 17, False)], (1, 1))


def test_errors_are_found_wherever_they_are() -> None:
    find: Any = compile_error_finder
    assert find(ProduceResponse)(make_produce_response(0, 6, 0, 2)) == [6, 2]
    assert find(HeartbeatResponse)(HeartbeatResponse(error_code=27)) == [27]
    assert find(HeartbeatResponse)(HeartbeatResponse()) == []
    topic = FetchableTopicResponse(topic="t", partitions=[PartitionData(error_code=1), PartitionData()])
    assert sorted(find(FetchResponse)(FetchResponse(error_code=70, responses=[topic]))) == [1, 70]
    assert find(EncodedResponse)(EncodedResponse(data=b"")) == []
