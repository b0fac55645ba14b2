"""Listeners that look like older brokers."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.handlers import HANDLERS
from kafkacompat.metadata.image import ImageHolder
from kafkacompat.server.connection import KafkaConnection, ListenerServices
from kafkacompat.server.emulation import emulate_release
from kafkacompat.server.frame_budget import FrameBudget
from kafkacompat.wire import compiler
from kafkacompat.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkacompat.wire.apis.list_offsets import ListOffsetsRequest
from kafkacompat.wire.apis.sasl_handshake import SaslHandshakeRequest
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.headers import encode_request_header
from kafkacompat.wire.releases import RELEASES, find_release
from kafkacompat.wire.schema import Request
from tests.handlers.data_node import DataNode
from tests.kafkacompat.server.world import Transport

NAMED = ApiVersionsRequest(client_software_name="c", client_software_version="1")


class Client:
    """A connection to a listener that looks like a release, of a broker with a feature at level 2."""

    def __init__(self, name: str) -> None:
        services = replace(DataNode().services, metadata=ImageHolder(), features={"transaction.version": 2})
        dispatcher = emulate_release(name, HANDLERS, services)
        budget = FrameBudget(1_000_000, lambda: 0)
        shared = ListenerServices("OLD", dispatcher, budget, 1_000_000, services.clock, set(), lambda *_: None)
        connection = KafkaConnection(shared, lambda *_: Deferred())
        self.transport = Transport()
        connection.makeConnection(self.transport)
        self._receive = connection.dataReceived

    def send(self, request: Request, version: int, body: bytes | None = None) -> None:
        content = encode_request_header(type(request), version, 1, "c")
        content += compiler.encode_message(request, version) if body is None else body
        self._receive(struct.pack(">i", len(content)) + content)

    def api_versions(self, version: int, answered_in: int) -> tuple[int, dict[int, tuple[int, int]]]:
        """Return the error, and the listed versions by the key of the API."""
        known = version in ApiVersionsRequest.VERSIONS
        self.send(NAMED, version, None if known else b"")
        response = compiler.decode_message(ApiVersionsResponse, self.transport.sent[8:], answered_in)
        listed = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
        return response.error_code, listed


@pytest.mark.parametrize("name", [name for name in RELEASES if find_release(name).is_since("0.10.0")])
def test_versions_served_by_both_are_listed(name: str) -> None:
    theirs = find_release(name).versions
    newest = theirs[18].last
    code, listed = Client(name).api_versions(newest, newest)
    assert code == 0
    assert listed.keys() == theirs.keys() & HANDLERS.keys()
    for key, (first, last) in listed.items():
        assert last == min(theirs[key].last, HANDLERS[key].versions.last)
        assert first == (0 if key == 0 else max(theirs[key].first, HANDLERS[key].versions.first))


@pytest.mark.parametrize(
    ("name", "version", "listed"),
    [
        ("0.10.0", 1, {}),
        ("0.10.0", 3, {}),
        ("2.3", 3, {}),
        ("2.4", 4, {18: (0, 3)}),
        ("3.8", 4, {18: (0, 3)}),
        ("4.3", 99, {18: (0, 4)}),
    ],
)
def test_a_version_of_api_versions_that_it_does_not_know(
    name: str, version: int, listed: dict[int, tuple[int, int]]
) -> None:
    assert Client(name).api_versions(version, 0) == (ErrorCode.UNSUPPORTED_VERSION, listed)


def test_before_there_was_api_versions_0_8_closes_the_connection_and_0_9_does_not_answer() -> None:
    oldest, next_one = Client("0.8.2"), Client("0.9.0")
    for client in (oldest, next_one):
        client.send(ApiVersionsRequest(), 0)
    assert (oldest.transport.aborted, oldest.transport.sent) == (True, b"")
    assert (next_one.transport.aborted, next_one.transport.sent) == (False, b"")


def test_a_request_that_0_9_does_not_answer_holds_up_no_other() -> None:
    client = Client("0.9.0")
    client.send(ApiVersionsRequest(), 0)
    client.send(ListOffsetsRequest(replica_id=-1), 0)
    assert client.transport.sent[4:] == struct.pack(">ii", 1, 0)


@pytest.mark.parametrize(("name", "served"), [("0.9.0", False), ("0.10.0", True), ("4.3", True)])
def test_an_unserved_api_closes_the_connection(name: str, served: bool) -> None:
    client = Client(name)
    client.send(SaslHandshakeRequest(mechanism="PLAIN"), 0)
    assert client.transport.aborted is not served


def test_versions_that_came_later_or_went_close_the_connection() -> None:
    later, gone = Client("0.10.0"), Client("4.0")
    later.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    gone.send(ListOffsetsRequest(replica_id=-1), 0)
    assert later.transport.aborted and gone.transport.aborted


@pytest.mark.parametrize(("name", "levels"), [("2.8", {}), ("3.9", {}), ("4.0", {"transaction.version": 2})])
def test_features_are_those_of_4_0(name: str, levels: dict[str, int]) -> None:
    """A client that sees a level would use versions that its release does not serve."""
    client = Client(name)
    client.send(NAMED, 3)
    response = compiler.decode_message(ApiVersionsResponse, client.transport.sent[8:], 3)
    assert {feature.name: feature.max_version_level for feature in response.finalized_features} == levels
