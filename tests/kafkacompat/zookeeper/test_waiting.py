"""Waiting for a connection."""

from __future__ import annotations

import pytest

from kafkacompat.zookeeper.client import ConnectionLossError, SessionExpiredError
from kafkacompat.zookeeper.waiting import ConnectionWaiter
from tests.kafkacompat.metadata.deferreds import has_fired
from tests.kafkacompat.zookeeper.memory_world import MemoryWorld


def test_waiters_fire_with_the_next_connection() -> None:
    world = MemoryWorld()
    client = world.connect()
    waiter = ConnectionWaiter(client, world.clock, 30)
    world.run(waiter.wait())
    world.server.disconnect(client)
    world.settle()
    waiting = [waiter.wait(), waiter.wait()]
    world.clock.advance(29)
    assert not any(map(has_fired, waiting))
    world.server.reconnect(client)
    world.settle()
    assert all(map(has_fired, waiting))
    assert world.clock.getDelayedCalls() == []


def test_waiting_ends_with_the_time_or_the_client() -> None:
    world = MemoryWorld()
    client = world.connect()
    waiter = ConnectionWaiter(client, world.clock, 30)
    world.server.disconnect(client)
    world.settle()
    late = waiter.wait()
    world.clock.advance(30)
    with pytest.raises(ConnectionLossError, match="ZooKeeper has not answered for 30 s"):
        world.run(late)
    waiting = waiter.wait()
    world.run(client.close())
    for failing in (waiting, waiter.wait()):
        with pytest.raises(SessionExpiredError, match="closed"):
            world.run(failing)
