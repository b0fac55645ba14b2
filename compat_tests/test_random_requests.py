"""Random requests of every API in every version that is served, from several connections at once, good ones and bad ones.

A good request is answered in its own version, or the connection is closed for a reason that the log gives; nothing is
answered UNKNOWN_SERVER_ERROR, the log has no traceback, memory stays bounded, and the broker then survives a kill.
TEST_SEED=n repeats the requests, though not how those of several connections mix; TEST_ROUNDS=n asks for longer.
"""

from __future__ import annotations

import os
import random
import re
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.brokers import Broker
from compat_tests.conftest import MakeBroker
from compat_tests.random_requests import KINDS, RequestMaker
from compat_tests.raw_client import ClosedError, RawClient
from compat_tests.test_bad_input import BATCH, create_topic, drain_client, produce, stored_values
from kafkacompat.handlers import HANDLERS
from kafkacompat.wire import compiler
from kafkacompat.wire.apis.alter_configs import AlterConfigsRequest, AlterConfigsResource, AlterConfigsResponse
from kafkacompat.wire.apis.heartbeat import HeartbeatRequest
from kafkacompat.wire.apis.join_group import JoinGroupRequest
from kafkacompat.wire.apis.leave_group import LeaveGroupRequest
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataRequestTopic
from kafkacompat.wire.apis.offset_commit import OffsetCommitRequest
from kafkacompat.wire.apis.produce import ProduceRequest
from kafkacompat.wire.apis.sync_group import SyncGroupRequest
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.headers import ResponseHeader, response_header_version
from kafkacompat.wire.schema import Request, Struct
from tests.wire.random_messages import seeded_random

ROUNDS = int(os.environ.get("TEST_ROUNDS") or 6)
"""How often each connection asks for every version of every API."""
CONNECTIONS = 3
MOST_AT_ONCE = 5
GROWTH_LIMIT_BYTES = 250_000_000
STOP_LIMIT_SECONDS = 10
BAD_ADDRESS = "127.0.0.2"
"""The source address of bad requests: the broker logs only some of the complaints about an address with many."""
BROKER_TYPE = 4
PROPERTIES = {
    # Requests that wait by design must not wait for long.
    "group.min.session.timeout.ms": "1",
    "group.max.session.timeout.ms": "300",
    "group.initial.rebalance.delay.ms": "10",
    "num.partitions": "3",
    # It is deleted again and again.
    "offsets.topic.num.partitions": "3",
}
DEFECT = re.compile(r"Traceback|Unhandled|UNKNOWN_SERVER_ERROR|^\S+ \S+ (ERROR|CRITICAL) ", re.MULTILINE)
GOOD_REASON = re.compile(r"acks=0")
"""The reasons for which the broker may close the connection of a well-formed request."""

SUCCESS = (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED)
SEQUEL = (JoinGroupRequest, SyncGroupRequest, HeartbeatRequest, OffsetCommitRequest, LeaveGroupRequest)

Question = tuple[Request, int]


class Asker(threading.Thread):
    """One connection after another, which send requests and judge the responses; ``problems`` has the defects."""

    def __init__(self, broker: Broker, seed: int) -> None:
        super().__init__(daemon=True)
        self._broker = broker
        self._rng = random.Random(seed)
        self._maker = RequestMaker(self._rng)
        self._client = RawClient(broker.port)
        self.closed: list[tuple[int, list[Question]]] = []
        self.problems: list[str] = []
        self.answers = 0

    def run(self) -> None:
        """Ask for everything, ROUNDS times."""
        try:
            for _ in range(ROUNDS):
                for questions in self._round():
                    self._ask(questions)
                    self._ask_badly(*questions[0])
        except Exception:
            self.problems.append(traceback.format_exc())

    def _round(self) -> Iterator[list[Question]]:
        """Everything once in any order, on topics that are there at first; a JoinGroup has a sequel."""
        topics = [MetadataRequestTopic(name=name) for name in KINDS["name"]]
        yield [(MetadataRequest(topics=topics, allow_auto_topic_creation=True), 4)]
        pairs = [(handler.request, version) for handler in HANDLERS.values() for version in handler.versions]
        self._rng.shuffle(pairs)
        while pairs:
            some = pairs[: self._rng.randint(1, MOST_AT_ONCE)]
            yield [(self._maker.make(cls, version), version) for cls, version in some]
            if any(cls is JoinGroupRequest for cls, _ in some):
                for cls in SEQUEL:
                    version = self._rng.choice(list(cls.VERSIONS))
                    yield [(self._maker.make(cls, version, goes_on=0.9), version)]
            del pairs[: len(some)]

    def _ask(self, questions: list[Question]) -> None:
        """Send some requests in one go and read their responses; reconnect if the connection is closed."""
        unanswered = [
            question
            for question in questions
            if not (isinstance(question[0], ProduceRequest) and question[0].acks == 0)
        ]
        try:
            for request, version in questions:
                self._client.send(request, version)
            while unanswered:
                self._judge(self._client.receive_frame(), *unanswered[0])
                del unanswered[0]
        except (ClosedError, ConnectionError):
            self.closed.append((self._client.socket.getsockname()[1], questions))
            self._client.socket.close()
            self._client = RawClient(self._broker.port)
        except (TimeoutError, AssertionError) as problem:
            raise AssertionError(f"{problem!r} for {unanswered[0]} among {questions}") from problem

    def _judge(self, frame: bytes, request: Request, version: int) -> None:
        """The answer is one in this version, has no unexpected error, and is learned from."""
        declared = HANDLERS[request.API_KEY].response
        header_version = response_header_version(declared, version)
        position = compiler.find_reader(ResponseHeader, header_version)(frame, 0)[1]
        answer, end = compiler.find_reader(declared, version)(frame, position)
        assert end == len(frame), f"{len(frame) - end} bytes after {answer}"
        assert compiler.encode_message(answer, version) == frame[position:], (
            f"{answer} is not what was sent: {frame.hex()}"
        )
        assert ErrorCode.UNKNOWN_SERVER_ERROR not in error_codes(answer), answer
        if getattr(answer, "error_code", ErrorCode.NONE) in SUCCESS:
            self._maker.learn(request)
            self._maker.learn(answer)
        self.answers += 1

    def _ask_badly(self, request: Request, version: int) -> None:
        """Send the request again with some bytes wrong or lost, and accept any response."""
        with RawClient(self._broker.port, address=BAD_ADDRESS) as client:
            payload = bytearray(client.encode(request, version))
            for _ in range(self._rng.randint(0, 3)):
                payload[self._rng.randrange(len(payload))] = self._rng.choice((0, 1, 0x7F, 0x80, 0xFF))
            client.send_frame(bytes(payload[: self._rng.choice((len(payload), self._rng.randrange(len(payload))))]))
            drain_client(client)


def error_codes(answer: Struct) -> Iterator[int]:
    """Yield every error code in a response, at any depth."""
    for name in type(answer).FIELDS:
        value = getattr(answer, name)
        if name == "error_code":
            yield value
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Struct):
                yield from error_codes(item)


def why_closed(log: str, port: int) -> str:
    """The reason that the log gives for the last connection from *port*."""
    reasons = re.findall(rf"closing 127\.0\.0\.1:{port}: (.*)", log)
    return reasons[-1] if reasons else "no reason in the log"


@pytest.fixture
def node(make_broker: MakeBroker, broker_kind: str, tmp_path: Path) -> Broker:
    """Return a broker that no other test uses, with two directories to move partitions between."""
    if broker_kind != "kafkacompat":
        pytest.skip("what is judged is our log and our memory")
    return make_broker({**PROPERTIES, "log.dirs": f"{tmp_path / 'a'},{tmp_path / 'b'}"})


def test_random_requests_are_answered_or_refused(node: Broker) -> None:
    seed = seeded_random()
    before = node.resident_bytes()
    askers = [Asker(node, seed.getrandbits(32)) for _ in range(CONNECTIONS)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    grown = node.resident_bytes() - before
    log = node.stderr()
    closed = [(why_closed(log, port), questions) for asker in askers for port, questions in asker.closed]
    print(f"{sum(asker.answers for asker in askers)} answers, {len(closed)} closed, {grown:,} bytes more than at first")

    assert [line for line in log.splitlines() if DEFECT.search(line)] == []
    assert not (problems := [problem for asker in askers for problem in asker.problems]), "\n".join(problems)
    assert [(reason, questions) for reason, questions in closed if not GOOD_REASON.search(reason)] == []
    assert grown < GROWTH_LIMIT_BYTES
    assert_serves_and_stops(node)


def assert_serves_and_stops(node: Broker) -> None:
    """After a reset of the configs, records can be produced, read after a kill, and the broker stops soon."""
    with RawClient(node.port) as client:
        resources = [AlterConfigsResource(resource_type=BROKER_TYPE, resource_name=name) for name in ("", "1")]
        reset = client.call(AlterConfigsRequest(resources=resources), AlterConfigsResponse, 1)
        assert [response.error_code for response in reset.responses] == [0, 0], reset
        create_topic(client, "at-last")
        assert produce(client, "at-last", BATCH) == 0
    node.kill()
    node.start()
    with RawClient(node.port) as client:
        assert stored_values(client, "at-last") == [b"one", b"two", b"three"]
    begun = time.monotonic()
    assert node.stop() == 0
    assert time.monotonic() - begun < STOP_LIMIT_SECONDS
    assert [line for line in node.stderr().splitlines() if DEFECT.search(line)] == []
