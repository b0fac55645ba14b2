"""The controller's requests to one broker."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kafkacompat.cluster.channel import BrokerChannel, ChannelClosedError
from kafkacompat.wire.apis.api_versions import ApiVersionsRequest
from tests.kafkacompat.metadata.deferreds import has_fired, outcome


class World:
    def __init__(self) -> None:
        self.clock = Clock()
        self.sent: list[tuple[Any, Deferred[Any]]] = []
        self.channel = BrokerChannel(2, self._send, self.clock, Random(1))

    def _send(self, request: Any) -> Deferred[Any]:
        answer: Deferred[Any] = Deferred()
        self.sent.append((request, answer))
        return answer


REQUESTS = [ApiVersionsRequest(client_software_name=name) for name in ("a", "b")]
RESPONSES: list[Any] = ["answer a", "answer b"]


def test_requests_are_sent_one_after_the_other() -> None:
    world = World()
    answers = [world.channel.send(request) for request in REQUESTS]
    assert [request for request, _ in world.sent] == REQUESTS[:1]
    world.sent[0][1].callback(RESPONSES[0])
    assert outcome(answers[0]) == RESPONSES[0]
    assert not has_fired(answers[1])
    assert [request for request, _ in world.sent] == REQUESTS
    world.sent[1][1].callback(RESPONSES[1])
    assert outcome(answers[1]) == RESPONSES[1]


def test_a_request_is_repeated_before_the_next_one_is_sent() -> None:
    world = World()
    answers = [world.channel.send(request) for request in REQUESTS]
    for _ in range(3):
        world.sent[-1][1].errback(ConnectionError("refused"))
        world.clock.advance(0.15)
    assert [request for request, _ in world.sent] == [REQUESTS[0]] * 4
    world.sent[-1][1].callback(RESPONSES[0])
    assert outcome(answers[0]) == RESPONSES[0]
    assert world.sent[-1][0] is REQUESTS[1]


@pytest.mark.parametrize("is_between_attempts", [False, True])
def test_requests_fail_when_the_broker_is_gone(is_between_attempts: bool) -> None:
    world = World()
    answers = [world.channel.send(request) for request in REQUESTS]
    if is_between_attempts:
        world.sent[0][1].errback(ConnectionError("refused"))
    world.channel.close()
    answers.append(world.channel.send(REQUESTS[0]))
    for answer in answers:
        with pytest.raises(ChannelClosedError):
            outcome(answer)
    world.clock.advance(10)
    assert len(world.sent) == 1
    if not is_between_attempts:
        world.sent[0][1].callback(RESPONSES[0])  # a late answer is for nobody
