"""Waiting for a connection, and repeating reads that lost theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from twisted.internet.defer import Deferred, succeed

from kafkacompat.timers import Clock
from kafkacompat.zookeeper.client import (
    ConnectionLossError,
    SessionExpiredError,
    SessionState,
    ZooKeeper,
    ZooKeeperError,
)

LOSSES = (ConnectionLossError, SessionExpiredError)
"""Errors after which a read can be repeated, and a change as well once it is clear that it did not happen."""

MAX_READS = 10


class ConnectionWaiter:
    """Lets callers wait until *client* is connected again, for at most *timeout_seconds*."""

    def __init__(self, client: ZooKeeper, clock: Clock, timeout_seconds: float) -> None:
        self._client = client
        self._clock = clock
        self._timeout_seconds = timeout_seconds
        self._waiting: dict[Deferred[None], None] = {}
        client.add_listener(self._notice)

    def wait(self) -> Deferred[None]:
        """Fire once the client is connected; fails with ZooKeeperError when it is closed or the time is over."""
        if self._client.state is SessionState.CONNECTED:
            return succeed(None)
        waiter: Deferred[None] = Deferred()
        if self._client.state is SessionState.CLOSED:
            waiter.errback(_closed_error())
            return waiter
        self._waiting[waiter] = None
        late = self._clock.callLater(self._timeout_seconds, self._give_up, waiter)

        def stop_clock(result: object) -> object:
            if late.active():
                late.cancel()
            return result

        return waiter.addBoth(stop_clock).addCallback(lambda _: None)

    def _notice(self, state: SessionState) -> None:
        if state not in (SessionState.CONNECTED, SessionState.CLOSED):
            return
        waiting, self._waiting = self._waiting, {}
        for waiter in waiting:
            if state is SessionState.CONNECTED:
                waiter.callback(None)
            else:
                waiter.errback(_closed_error())

    def _give_up(self, waiter: Deferred[None]) -> None:
        del self._waiting[waiter]
        waiter.errback(ConnectionLossError(f"ZooKeeper has not answered for {self._timeout_seconds:g} s"))


def _closed_error() -> ZooKeeperError:
    return SessionExpiredError("the client of ZooKeeper is closed")


Value = TypeVar("Value")


async def read_again(read: Callable[[], Deferred[Value]], connection: ConnectionWaiter) -> Value:
    """Read, and repeat it as often as the connection is lost in between; raises ZooKeeperError."""
    for _ in range(MAX_READS - 1):
        try:
            return await read()
        except LOSSES:
            await connection.wait()
    return await read()
