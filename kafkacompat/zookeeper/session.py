"""The states of a session as a table, and the errors that operations fail with in each state."""

from __future__ import annotations

from enum import Enum, auto

from kafkacompat.zookeeper.client import (
    ConnectionLossError,
    Listener,
    SessionExpiredError,
    SessionState,
    ZooKeeperError,
)


class SessionEvent(Enum):
    """What happens to a session."""

    ESTABLISHED = auto()
    """A server accepted the client: a new session, or the old one again."""
    DISCONNECTED = auto()
    """The connection broke."""
    EXPIRED = auto()
    """A server reported that the session has expired."""
    ENDED = auto()
    """The client was closed, or can no longer connect."""


TRANSITIONS: dict[tuple[SessionState, SessionEvent], SessionState] = {
    (SessionState.CLOSED, SessionEvent.ESTABLISHED): SessionState.CONNECTED,
    (SessionState.CONNECTED, SessionEvent.DISCONNECTED): SessionState.SUSPENDED,
    (SessionState.CONNECTED, SessionEvent.EXPIRED): SessionState.LOST,
    (SessionState.CONNECTED, SessionEvent.ENDED): SessionState.CLOSED,
    (SessionState.SUSPENDED, SessionEvent.ESTABLISHED): SessionState.CONNECTED,
    (SessionState.SUSPENDED, SessionEvent.EXPIRED): SessionState.LOST,
    (SessionState.SUSPENDED, SessionEvent.ENDED): SessionState.CLOSED,
    (SessionState.LOST, SessionEvent.ESTABLISHED): SessionState.CONNECTED,
    (SessionState.LOST, SessionEvent.ENDED): SessionState.CLOSED,
}
"""The next state; an event that is missing for a state changes nothing."""

_REFUSALS: dict[SessionState, tuple[type[ZooKeeperError], str]] = {
    SessionState.SUSPENDED: (
        ConnectionLossError,
        "the connection to ZooKeeper is lost; the client is connecting again",
    ),
    SessionState.LOST: (SessionExpiredError, "the session with ZooKeeper has expired; the client is opening a new one"),
    SessionState.CLOSED: (SessionExpiredError, "the client of ZooKeeper is not started or closed"),
}


class Session:
    """The state of a client's session, which notifies the listeners of its changes.

    A client that was closed stays closed: `apply` then changes nothing.
    """

    def __init__(self) -> None:
        self.state = SessionState.CLOSED
        self.session_id = 0
        self._ended = False
        self._listeners: list[Listener] = []

    def add_listener(self, listener: Listener) -> None:
        """See ZooKeeper.add_listener."""
        self._listeners.append(listener)

    def apply(self, event: SessionEvent, session_id: int = 0) -> None:
        """Change the state; *session_id* is the id of the session that was ESTABLISHED."""
        if self._ended:
            return
        self._ended = event is SessionEvent.ENDED
        if event is SessionEvent.ESTABLISHED:
            self.session_id = session_id
        before, self.state = self.state, TRANSITIONS.get((self.state, event), self.state)
        if self.state is not before:
            for listener in list(self._listeners):
                listener(self.state)

    def check_connected(self) -> None:
        """Raise the error of an operation that cannot be sent now."""
        if self.state is not SessionState.CONNECTED:
            error, sentence = _REFUSALS[self.state]
            raise error(sentence)
