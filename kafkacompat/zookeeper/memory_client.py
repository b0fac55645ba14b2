"""A client of the memory ZooKeeper, with a connection that can be cut."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Protocol, TypeVar, cast

from twisted.internet.defer import Deferred, execute, maybeDeferred
from twisted.internet.task import deferLater
from twisted.python.failure import Failure

from kafkacompat.timers import Clock, DelayedCall
from kafkacompat.zookeeper.client import (
    ANY_VERSION,
    ConnectionLossError,
    Create,
    Delete,
    Listener,
    NodeStat,
    Operation,
    Result,
    SessionState,
    SetData,
    Watch,
    WatchEvent,
    WatchKind,
    ZooKeeperError,
)
from kafkacompat.zookeeper.requests import Chroot, check_size, create_with_parents, ensure_path
from kafkacompat.zookeeper.session import Session, SessionEvent

Value = TypeVar("Value")

RETRY_SECONDS = 0.5
"""Pause before a client that starts looks for a server again."""


class WatchTable(Enum):
    """Table of a server's watches: those on nodes, and those on the children of nodes."""

    NODE = auto()
    CHILDREN = auto()


class Server(Protocol):
    """The server, as its clients see it. Paths are absolute, and every method returns at once.

    ``draw_delay_s`` returns how many seconds anything takes from a client to the server, or back.
    """

    draw_delay_s: Callable[[], float]

    @property
    def is_away(self) -> bool:
        """Whether no client can connect."""

    def clock_for(self, client: MemoryClient) -> Clock:
        """Return the clock by which the client's requests arrive."""

    def open_session(self, client: MemoryClient) -> int:
        """Open a session and return its id."""

    def resume_session(self, session_id: int) -> bool:
        """Return whether the session still exists, and keep it if so."""

    def close_session(self, session_id: int) -> None:
        """End a session and delete its ephemeral nodes."""

    def get(self, path: str) -> tuple[bytes, NodeStat]:
        """See ZooKeeper.get."""

    def exists(self, path: str) -> NodeStat | None:
        """See ZooKeeper.exists."""

    def children(self, path: str) -> list[str]:
        """See ZooKeeper.children."""

    def change(self, operations: Sequence[Operation], session_id: int) -> list[Result]:
        """See ZooKeeper.multi."""

    def add_watch(self, table: WatchTable, path: str, watch: MemoryWatch) -> None:
        """Fire *watch* at the next event that the table's watches on *path* notice."""


@dataclass(eq=False)
class MemoryWatch:
    """A watch that a client has set on *path*."""

    client: MemoryClient
    receiver: Watch
    path: str


@dataclass(eq=False)
class _Request:
    """A request under way; ``changes`` says whether it may change the tree."""

    work: Callable[[], Any]
    changes: bool
    answer: Deferred[Any]


class MemoryClient:
    """A `ZooKeeper` over a memory server. A request reaches the server in a turn of its own, its answer comes in a later one.

    `MemoryZooKeeper` cuts and restores its connection.
    """

    def __init__(self, server: Server, clock: Clock, chroot: str, session_timeout_seconds: float) -> None:
        self.clock = clock
        self.session_timeout_seconds = session_timeout_seconds
        self.is_linked = False
        self._server = server
        self._chroot = Chroot(chroot)
        self._session = Session()
        self._pending: dict[_Request, None] = {}
        self._outgoing: deque[_Request] = deque()
        self._incoming: deque[Callable[[], object]] = deque()
        self._watches: dict[MemoryWatch, None] = {}
        self._noticing: DelayedCall | None = None
        self._loses_next_answer = False
        self._is_barred = False

    # ZooKeeper

    @property
    def session_id(self) -> int:
        """See ZooKeeper.session_id."""
        return self._session.session_id

    @property
    def state(self) -> SessionState:
        """See ZooKeeper.state."""
        return self._session.state

    def add_listener(self, listener: Listener) -> None:
        """See ZooKeeper.add_listener."""
        self._session.add_listener(listener)

    def start(self) -> Deferred[None]:
        """See ZooKeeper.start."""
        return Deferred.fromCoroutine(self._start())

    async def _start(self) -> None:
        await self._wait_for_server()
        self.is_linked = True
        self._establish()
        root = Chroot("")
        await ensure_path(lambda path: self._create(root, Create(path, b"")), self._chroot.absolute("/"))

    async def _wait_for_server(self) -> None:
        deadline = self.clock.seconds() + self.session_timeout_seconds
        await deferLater(self.clock, 0)  # type: ignore[arg-type]
        while self._server.is_away:
            if self.clock.seconds() >= deadline:
                raise ZooKeeperError(f"no ZooKeeper answers within {self.session_timeout_seconds:g} s")
            await deferLater(self.clock, RETRY_SECONDS)  # type: ignore[arg-type]

    def close(self) -> Deferred[None]:
        """See ZooKeeper.close."""
        if self.state is SessionState.CONNECTED:
            closing = self._submit(lambda: self._server.close_session(self.session_id), changes=True)
        else:
            closing = deferLater(self.clock, 0)  # type: ignore[arg-type]
        return closing.addBoth(lambda _: self._end())

    def _end(self) -> None:
        self._watches.clear()
        self._drop_connection(SessionEvent.ENDED)

    def create(
        self, path: str, value: bytes, *, ephemeral: bool = False, sequence: bool = False, make_path: bool = False
    ) -> Deferred[str]:
        """See ZooKeeper.create."""

        def create(path: str) -> Deferred[str]:
            return self._create(self._chroot, Create(path, value, ephemeral, sequence))

        def create_parent(path: str) -> Deferred[str]:
            return self._create(self._chroot, Create(path, b""))

        return Deferred.fromCoroutine(create_with_parents(create, create_parent, path)) if make_path else create(path)

    def _create(self, chroot: Chroot, operation: Create) -> Deferred[str]:
        return self._change(chroot, [operation]).addCallback(lambda results: cast(str, results[0]))

    def get(self, path: str, watch: Watch | None = None) -> Deferred[tuple[bytes, NodeStat]]:
        """See ZooKeeper.get."""
        return self._read(self._server.get, path, WatchTable.NODE, watch)

    def exists(self, path: str, watch: Watch | None = None) -> Deferred[NodeStat | None]:
        """See ZooKeeper.exists."""
        return self._read(self._server.exists, path, WatchTable.NODE, watch)

    def children(self, path: str, watch: Watch | None = None) -> Deferred[list[str]]:
        """See ZooKeeper.children."""
        return self._read(self._server.children, path, WatchTable.CHILDREN, watch)

    def set(self, path: str, value: bytes, version: int = ANY_VERSION) -> Deferred[NodeStat]:
        """See ZooKeeper.set."""
        changing = self._change(self._chroot, [SetData(path, value, version)])
        return changing.addCallback(lambda results: cast(NodeStat, results[0]))

    def delete(self, path: str, version: int = ANY_VERSION) -> Deferred[None]:
        """See ZooKeeper.delete."""
        return self._change(self._chroot, [Delete(path, version)]).addCallback(lambda _: None)

    def multi(self, operations: Sequence[Operation]) -> Deferred[list[Result]]:
        """See ZooKeeper.multi."""
        return self._change(self._chroot, operations)

    # Requests

    def _read(
        self, read: Callable[[str], Value], path: str, table: WatchTable, receiver: Watch | None
    ) -> Deferred[Value]:
        def begin() -> Deferred[Value]:
            absolute = self._chroot.absolute(path)

            def work() -> Value:
                value = read(absolute)
                if receiver is not None:
                    watch = MemoryWatch(self, receiver, path)
                    self._watches[watch] = None
                    self._server.add_watch(table, absolute, watch)
                return value

            return self._submit(work, changes=False)

        return maybeDeferred(begin)

    def _change(self, chroot: Chroot, operations: Sequence[Operation]) -> Deferred[list[Result]]:
        def begin() -> Deferred[list[Result]]:
            absolute = [chroot.absolute_operation(operation) for operation in operations]
            check_size(absolute)
            return self._submit(lambda: self._server.change(absolute, self.session_id), changes=True)

        def make_relative(results: list[Result]) -> list[Result]:
            return [chroot.relative(result) if isinstance(result, str) else result for result in results]

        return maybeDeferred(begin).addCallback(make_relative)

    def _submit(self, work: Callable[[], Value], *, changes: bool) -> Deferred[Value]:
        self._session.check_connected()
        request = _Request(work, changes, Deferred())
        self._pending[request] = None
        self._outgoing.append(request)
        self._server.clock_for(self).callLater(self._server.draw_delay_s(), self._perform_next)
        return request.answer

    def _perform_next(self) -> None:
        """Let the server handle the oldest request on its way, unless the connection was lost before."""
        if not self._outgoing:
            return
        request = self._outgoing.popleft()
        if not self.is_linked or request not in self._pending:
            return
        outcome: list[object] = []
        execute(request.work).addBoth(outcome.append)
        if request.changes and self._loses_next_answer:
            self._loses_next_answer = False
            self.cut()
            self.restore()
        else:
            self._receive_later(lambda: self._settle(request, outcome[0]))

    def _settle(self, request: _Request, outcome: object) -> None:
        if request not in self._pending:
            return
        del self._pending[request]
        if isinstance(outcome, Failure):
            request.answer.errback(outcome)
        else:
            request.answer.callback(outcome)

    def _receive_later(self, receive: Callable[[], object]) -> None:
        """Receive something from the server in a later turn, after everything that was sent before."""
        self._incoming.append(receive)
        self.clock.callLater(self._server.draw_delay_s(), self._receive_next)

    def _receive_next(self) -> None:
        if self._incoming:
            self._incoming.popleft()()

    # The connection, as the server sees it

    def notify(self, watch: MemoryWatch, kind: WatchKind, delay_seconds: float) -> None:
        """Fire a watch of this client: after everything that was sent before, or *delay_seconds* from now."""
        if delay_seconds:
            self.clock.callLater(delay_seconds, self._fire, watch, kind)
        elif self.is_linked:
            self._receive_later(lambda: self._fire(watch, kind))

    def _fire(self, watch: MemoryWatch, kind: WatchKind) -> None:
        if self.is_linked and watch in self._watches:
            del self._watches[watch]
            watch.receiver(WatchEvent(kind, watch.path))

    def lose_next_answer(self) -> None:
        """Lose the connection between the next change and its answer."""
        self._loses_next_answer = True

    def cut(self, noticed_after_seconds: float = 0) -> None:
        """Cut the connection, unless it is, until `restore`; the client notices it after some seconds."""
        self._is_barred = True
        if not self.is_linked:
            return
        self.is_linked = False
        self._noticing = self.clock.callLater(noticed_after_seconds, self._lose_connection)

    def abandon(self, arriving: int) -> None:
        """End with the client's process, after the first *arriving* requests on their way have arrived."""
        for _ in range(min(arriving, len(self._outgoing))):
            self._perform_next()
        self._outgoing.clear()
        self.is_linked = False
        self._is_barred = True

    def restore(self) -> None:
        """Let the client connect again."""
        self._is_barred = False
        self.clock.callLater(self._server.draw_delay_s(), self._reconnect)

    def _lose_connection(self) -> None:
        watches, self._watches = self._watches, {}
        self._drop_connection(SessionEvent.DISCONNECTED)
        for watch in watches:
            watch.receiver(WatchEvent(WatchKind.LOST, watch.path))

    def _drop_connection(self, event: SessionEvent) -> None:
        """Forget what is under way, then fail the requests: their callbacks see the new state."""
        pending, self._pending = self._pending, {}
        self._incoming.clear()
        self.is_linked = False
        self._session.apply(event)
        for request in pending:
            request.answer.errback(ConnectionLossError("the connection to ZooKeeper was lost before the answer came"))

    def _reconnect(self) -> None:
        if self.is_linked or self._is_barred or self._server.is_away or self.state is SessionState.CLOSED:
            return
        if self._noticing is not None and self._noticing.active():
            self._noticing.cancel()
            self._lose_connection()
        self.is_linked = True
        if self._server.resume_session(self.session_id):
            self._session.apply(SessionEvent.ESTABLISHED, self.session_id)
        else:
            self._session.apply(SessionEvent.EXPIRED)
            self.clock.callLater(0, self._establish)

    def _establish(self) -> None:
        """Open a new session."""
        if self.is_linked:
            self._session.apply(SessionEvent.ESTABLISHED, self._server.open_session(self))
