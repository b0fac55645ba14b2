"""The memory ZooKeeper: the contract of every client, and the faults that it injects."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kafkacompat.zookeeper.client import (
    ConnectionLossError,
    SessionExpiredError,
    SessionState,
    WatchEvent,
    WatchKind,
)
from tests.kafkacompat.metadata.deferreds import has_fired
from tests.kafkacompat.zookeeper.contract import World, ZooKeeperContract
from tests.kafkacompat.zookeeper.memory_world import MemoryWorld

SUSPENDED, LOST, CONNECTED = SessionState.SUSPENDED, SessionState.LOST, SessionState.CONNECTED


@pytest.fixture
def memory() -> MemoryWorld:
    return MemoryWorld()


@pytest.fixture
def world(memory: MemoryWorld) -> World:
    return memory


class TestContract(ZooKeeperContract):
    """The contract on the memory ZooKeeper."""


def _fails_with(memory: MemoryWorld, deferred: Deferred[Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        memory.run(deferred)


def test_nothing_happens_before_the_next_turn(memory: MemoryWorld) -> None:
    client = memory.server.connect(memory.clock)
    starting = client.start()
    assert not has_fired(starting) and client.state is SessionState.CLOSED
    memory.run(starting)
    creating = client.create("/a", b"1")
    assert not has_fired(creating) and "/a" not in memory.server.contents()
    memory.run(creating)
    assert memory.server.contents() == {"/": b"", "/a": b"1"}


def test_a_client_that_is_cut_off_is_suspended_and_comes_back_with_its_session(memory: MemoryWorld) -> None:
    client = memory.connect()
    states, events = list[SessionState](), list[WatchEvent]()
    client.add_listener(states.append)
    session_id = client.session_id
    memory.run(client.create("/id", b"", ephemeral=True))
    memory.run(client.children("/", events.append))
    memory.server.disconnect(client)
    waiting = client.create("/never", b"")
    _fails_with(memory, waiting, ConnectionLossError)
    assert states == [SUSPENDED] and events == [WatchEvent(WatchKind.LOST, "/")]
    _fails_with(memory, client.get("/id"), ConnectionLossError)
    memory.clock.advance(5.9)
    memory.server.reconnect(client)
    memory.settle()
    memory.clock.advance(100)
    assert states == [SUSPENDED, CONNECTED] and client.session_id == session_id
    assert memory.server.contents() == {"/": b"", "/id": b""}
    assert len(events) == 1


def test_a_session_expires_after_its_timeout_without_a_connection(memory: MemoryWorld) -> None:
    client, observer = memory.connect(session_timeout_seconds=6), memory.connect()
    states, events = list[SessionState](), list[WatchEvent]()
    client.add_listener(states.append)
    memory.run(client.create("/id", b"", ephemeral=True))
    memory.run(observer.exists("/id", events.append))
    memory.server.disconnect(client)
    memory.clock.advance(5.9)
    assert events == [] and states == [SUSPENDED]
    memory.clock.advance(0.2)
    assert events == [WatchEvent(WatchKind.DELETED, "/id")] and states == [SUSPENDED]
    memory.server.reconnect(client)
    memory.settle()
    assert states == [SUSPENDED, LOST, CONNECTED]
    memory.run(client.create("/id", b"", ephemeral=True))


def test_a_client_may_take_itself_for_connected_after_its_session_has_expired(memory: MemoryWorld) -> None:
    client = memory.connect(session_timeout_seconds=6)
    memory.run(client.create("/id", b"", ephemeral=True))
    memory.server.disconnect(client, noticed_after_seconds=10)
    waiting = client.set("/id", b"")
    memory.clock.advance(9)
    assert client.state is CONNECTED and not has_fired(waiting)
    assert "/id" not in memory.server.contents()
    memory.clock.advance(1)
    assert client.state is SUSPENDED
    _fails_with(memory, waiting, ConnectionLossError)


def test_a_client_that_reconnects_before_it_noticed_loses_what_was_under_way(memory: MemoryWorld) -> None:
    client = memory.connect()
    states: list[SessionState] = []
    client.add_listener(states.append)
    memory.server.disconnect(client, noticed_after_seconds=10)
    memory.server.disconnect(client)
    waiting = client.create("/a", b"")
    memory.server.reconnect(client)
    _fails_with(memory, waiting, ConnectionLossError)
    memory.clock.advance(20)
    assert states == [SUSPENDED, CONNECTED]


def test_an_answer_is_lost_after_the_change_was_made(memory: MemoryWorld) -> None:
    client = memory.connect()
    states: list[SessionState] = []
    client.add_listener(states.append)
    memory.server.lose_next_answer(client)
    memory.run(client.exists("/a"))
    creating = client.create("/a", b"1")

    def note_state(result: object) -> object:
        states.append(client.state)
        return result

    creating.addBoth(note_state)
    _fails_with(memory, creating, ConnectionLossError)
    assert states == [SUSPENDED, SUSPENDED, CONNECTED]
    assert memory.server.contents()["/a"] == b"1"
    memory.run(client.create("/b", b""))


def test_watches_can_be_delayed(memory: MemoryWorld) -> None:
    client, other = memory.connect(), memory.connect()
    memory.run(client.create("/a", b"1"))
    events: list[WatchEvent] = []
    memory.run(client.get("/a", events.append))
    memory.server.delay_watches(2)
    memory.run(other.set("/a", b"2"))
    assert memory.run(client.get("/a"))[0] == b"2" and events == []
    memory.clock.advance(2)
    assert events == [WatchEvent(WatchKind.CHANGED, "/a")]
    memory.run(client.get("/a", events.append))
    memory.run(other.set("/a", b"3"))
    memory.server.disconnect(client)
    memory.clock.advance(2)
    assert events[1:] == [WatchEvent(WatchKind.LOST, "/a")]
    memory.run(other.get("/a", events.append))
    memory.run(other.set("/a", b"3"))
    memory.server.disconnect(other, noticed_after_seconds=5)
    memory.clock.advance(4)
    memory.server.reconnect(other)
    memory.settle()
    assert events[2:] == [WatchEvent(WatchKind.LOST, "/a")]
    memory.server.delay_watches(0)
    memory.run(other.get("/a", events.append))
    memory.run(other.set("/a", b"4"))
    assert events[3:] == [WatchEvent(WatchKind.CHANGED, "/a")]


def test_a_session_that_expires_while_its_client_is_cut_off_is_noticed_later(memory: MemoryWorld) -> None:
    client = memory.connect()
    session_id = client.session_id
    memory.server.disconnect(client)
    memory.settle()
    memory.server.expire(session_id)
    memory.server.expire(session_id)
    memory.settle()
    assert client.state is SUSPENDED
    refused: list[object] = []

    def note_error(result: object) -> None:
        assert isinstance(result, Failure)
        refused.append(type(result.value))

    def look(state: SessionState) -> None:
        if state is LOST:
            client.get("/").addBoth(note_error)

    client.add_listener(look)
    memory.server.reconnect(client)
    memory.settle()
    assert client.state is CONNECTED and refused == [SessionExpiredError]


def test_a_client_that_is_cut_off_can_be_closed(memory: MemoryWorld) -> None:
    client = memory.connect(session_timeout_seconds=6)
    memory.run(client.create("/id", b"", ephemeral=True))
    memory.server.disconnect(client)
    memory.settle()
    memory.run(client.close())
    memory.server.reconnect(client)
    memory.settle()
    assert client.state is SessionState.CLOSED and "/id" in memory.server.contents()
    memory.clock.advance(6)
    assert "/id" not in memory.server.contents()
