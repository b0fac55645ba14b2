"""A ZooKeeper in memory, for tests and simulations: clients on a clock, and faults that a caller injects.

It has what the broker uses of a server: the tree with versions and transaction ids, sessions, ephemeral and sequence nodes,
watches, transactions, and the bound on the size of a request. It has no ACLs. One contract test covers it and ZooKeeper 3.9.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from kafkacompat.timers import Clock, DelayedCall, now_ms
from kafkacompat.zookeeper.client import Delete, NodeStat, Operation, Result, WatchKind
from kafkacompat.zookeeper.memory_client import MemoryClient, MemoryWatch, WatchTable
from kafkacompat.zookeeper.memory_tree import Tree, TreeEvent

FIRST_SESSION_ID = 0x1000_0000_0000_0000
SESSION_TIMEOUT_SECONDS = 18.0

_NOTICED_BY = {
    WatchKind.CREATED: (WatchTable.NODE,),
    WatchKind.CHANGED: (WatchTable.NODE,),
    WatchKind.DELETED: (WatchTable.NODE, WatchTable.CHILDREN),
    WatchKind.CHILDREN: (WatchTable.CHILDREN,),
}


class _ServerSession:
    """A session that exists; ``expiry`` is under way while its client is disconnected."""

    def __init__(self, client: MemoryClient) -> None:
        self.client = client
        self.expiry: DelayedCall | None = None

    def stop_expiry(self) -> None:
        if self.expiry is not None and self.expiry.active():
            self.expiry.cancel()


class MemoryZooKeeper:
    """The server. `connect` makes clients; the methods under "Faults" disturb them.

    With a *clock* of its own, the time of the server does not depend on the clients': sessions expire, and what a client has sent
    arrives, whatever becomes of the client's process. ``draw_delay_s`` returns how long a request, an answer or the event of a
    watch travels.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self.draw_delay_s: Callable[[], float] = lambda: 0.0
        self.on_event: Callable[[TreeEvent], object] = lambda event: None
        """Called after each change, whoever made it."""
        self._clock = clock
        self._is_away = False
        self._tree = Tree()
        self._sessions: dict[int, _ServerSession] = {}
        self._clients: dict[MemoryClient, None] = {}
        self._next_session_id = FIRST_SESSION_ID
        self._watches = {table: defaultdict[str, list[MemoryWatch]](list) for table in WatchTable}
        self._watch_delay_seconds = 0.0

    def connect(
        self, clock: Clock, chroot: str = "", session_timeout_seconds: float = SESSION_TIMEOUT_SECONDS
    ) -> MemoryClient:
        """Return a client that is not started; its Deferreds fire, and its watches are called, by *clock*."""
        client = MemoryClient(self, clock, chroot, session_timeout_seconds)
        self._clients[client] = None
        return client

    def contents(self) -> dict[str, bytes]:
        """Return the values of all nodes by absolute path, without a request."""
        return self._tree.contents()

    def has(self, path: str) -> bool:
        """Return whether there is a node at an absolute path."""
        return self._tree.exists(path) is not None

    def owner(self, path: str) -> int:
        """Return the session of the ephemeral node at an absolute path, 0 without one."""
        stat = self._tree.exists(path)
        return 0 if stat is None else stat.ephemeral_owner

    # Faults

    def expire(self, session_id: int) -> None:
        """End a session as its timeout would. A client that is connected is disconnected and opens another one."""
        if session_id not in self._sessions or self._is_away:
            return
        client = self._sessions[session_id].client
        self.close_session(session_id)
        if client.is_linked:
            client.cut()
            client.restore()

    def disconnect(self, client: MemoryClient, *, noticed_after_seconds: float = 0) -> None:
        """Cut a client's connection until `reconnect`. Its session expires after its timeout.

        The client notices nothing for *noticed_after_seconds*: meanwhile it takes itself for connected, and its requests wait.
        """
        client.cut(noticed_after_seconds)
        self._expire_later(client)

    def abandon(self, client: MemoryClient, *, arriving: int = 0) -> None:
        """Note that a client's process has ended: the first *arriving* of its requests on their way still arrive."""
        client.abandon(arriving)
        del self._clients[client]
        self._expire_later(client)

    def _expire_later(self, client: MemoryClient) -> None:
        session = self._sessions.get(client.session_id)
        if session is not None and not self._is_away:
            self._begin_expiry(session)

    def _begin_expiry(self, session: _ServerSession) -> None:
        session.stop_expiry()
        client = session.client
        clock = self.clock_for(client)
        session.expiry = clock.callLater(client.session_timeout_seconds, self.expire, client.session_id)

    def reconnect(self, client: MemoryClient) -> None:
        """Let a disconnected client connect again, with its old session if that exists."""
        client.restore()

    def go_away(self, *, noticed_after_seconds: float = 0) -> None:
        """Disconnect all clients until `come_back`. No session expires meanwhile, as no server measures its time."""
        self._is_away = True
        for session in self._sessions.values():
            session.stop_expiry()
            session.client.cut(noticed_after_seconds)

    def come_back(self) -> None:
        """Let all clients connect again; each session has its full timeout for that."""
        self._is_away = False
        for session in self._sessions.values():
            self._begin_expiry(session)
        for client in self._clients:
            client.restore()

    def lose_next_answer(self, client: MemoryClient) -> None:
        """Make the client's next change, and break the connection before its answer; the client connects again at once."""
        client.lose_next_answer()

    def delay_watches(self, seconds: float) -> None:
        """Deliver the events of all watches this much later, after answers that were sent since. 0 ends the delay."""
        self._watch_delay_seconds = seconds

    # What clients call: see `memory_client.Server`

    @property
    def is_away(self) -> bool:
        """See Server.is_away."""
        return self._is_away

    def clock_for(self, client: MemoryClient) -> Clock:
        """See Server.clock_for."""
        return self._clock or client.clock

    def open_session(self, client: MemoryClient) -> int:
        """See Server.open_session."""
        session_id = self._next_session_id
        self._next_session_id += 1
        self._sessions[session_id] = _ServerSession(client)
        self._tree.apply([], session_id, now_ms(self.clock_for(client)))
        return session_id

    def resume_session(self, session_id: int) -> bool:
        """See Server.resume_session."""
        if session_id not in self._sessions:
            return False
        self._sessions[session_id].stop_expiry()
        return True

    def close_session(self, session_id: int) -> None:
        """See Server.close_session."""
        if session_id in self._sessions:
            self._sessions[session_id].stop_expiry()
            self.change([Delete(path) for path in self._tree.owned_by(session_id)], session_id)
            del self._sessions[session_id]

    def get(self, path: str) -> tuple[bytes, NodeStat]:
        """See Server.get."""
        return self._tree.get(path)

    def exists(self, path: str) -> NodeStat | None:
        """See Server.exists."""
        return self._tree.exists(path)

    def children(self, path: str) -> list[str]:
        """See Server.children."""
        return self._tree.children(path)

    def change(self, operations: Sequence[Operation], session_id: int) -> list[Result]:
        """See Server.change."""
        clock = self.clock_for(self._sessions[session_id].client)
        results, events = self._tree.apply(operations, session_id, now_ms(clock))
        for event in events:
            self.on_event(event)
            self._notify_watches(event)
        return results

    def add_watch(self, table: WatchTable, path: str, watch: MemoryWatch) -> None:
        """See Server.add_watch."""
        self._watches[table][path].append(watch)

    def _notify_watches(self, event: TreeEvent) -> None:
        for table in _NOTICED_BY[event.kind]:
            for watch in self._watches[table].pop(event.path, ()):
                watch.client.notify(watch, event.kind, self._watch_delay_seconds)
