"""A client of ZooKeeper, as the broker uses it: the operations, their results and their errors.

Paths begin with a slash and are relative to the client's chroot. A Deferred fires, and a watch or a listener is called, in the
reactor's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

ANY_VERSION = -1
"""Version that every node has, for `ZooKeeper.set`, `ZooKeeper.delete` and operations."""


class SessionState(Enum):
    """State of a client's session; `session` has the table of transitions."""

    CONNECTED = auto()
    """The session exists and the client is connected."""
    SUSPENDED = auto()
    """The connection is lost. The session may exist, or may have expired without the client's knowledge."""
    LOST = auto()
    """The session has expired: its ephemeral nodes are gone. A new session follows, with another id."""
    CLOSED = auto()
    """The client has not been started, is closed, or has failed for good."""


class WatchKind(Enum):
    """Reason why a watch fires."""

    CREATED = auto()
    """The node that `exists` did not find was created."""
    CHANGED = auto()
    """The node has a new value."""
    DELETED = auto()
    """The node was deleted."""
    CHILDREN = auto()
    """A child was created or deleted."""
    LOST = auto()
    """The connection was lost, so the client no longer watches the node. Read it again once the client is connected."""


class WatchEvent(NamedTuple):
    """One event of a watch; ``path`` is the path that the watch was set on."""

    kind: WatchKind
    path: str


Watch: TypeAlias = Callable[[WatchEvent], object]
"""Receiver of a watch's only event."""

Listener: TypeAlias = Callable[[SessionState], object]
"""Receiver of a session's new state."""


class NodeStat(NamedTuple):
    """A node's versions and times.

    ``version`` counts the changes of its value, ``czxid`` and ``mzxid`` are the transactions that created and last changed it.
    ``ephemeral_owner`` is the id of the session that it ends with, 0 for a persistent node. ``children`` is their number.
    """

    version: int
    czxid: int
    mzxid: int
    ephemeral_owner: int
    ctime_ms: int
    mtime_ms: int
    children: int


class Create(NamedTuple):
    """Create a node; its result is the path, with the number of a sequence node."""

    path: str
    value: bytes
    ephemeral: bool = False
    sequence: bool = False


class SetData(NamedTuple):
    """Replace a node's value if it has this version; its result is the new NodeStat."""

    path: str
    value: bytes
    version: int = ANY_VERSION


class Delete(NamedTuple):
    """Delete a node without children if it has this version; its result is None."""

    path: str
    version: int = ANY_VERSION


class Check(NamedTuple):
    """Require that a node has this version; its result is None."""

    path: str
    version: int


Operation: TypeAlias = Create | SetData | Delete | Check
Result: TypeAlias = str | NodeStat | None


class ZooKeeperError(Exception):
    """An operation failed; the message is one sentence.

    ``operation_index`` is the position of the operation that made a `ZooKeeper.multi` fail.
    """

    operation_index: int | None = None


class NodeExistsError(ZooKeeperError):
    """The node to create exists."""


class NoNodeError(ZooKeeperError):
    """The node, or the parent of the node to create, does not exist."""


class BadVersionError(ZooKeeperError):
    """The node has another version."""


class NotEmptyError(ZooKeeperError):
    """The node to delete has children."""


class NoAuthError(ZooKeeperError):
    """The node's ACL does not allow the operation to this client."""


class ConnectionLossError(ZooKeeperError):
    """The connection was lost before the answer came: the operation may have happened."""


class SessionExpiredError(ZooKeeperError):
    """The session has expired or the client is closed; the operation did not happen."""


class ZooKeeper(Protocol):
    """A client with one session at a time.

    Its operations fail with ZooKeeperError and its subclasses. While the client is not connected, they fail at once.
    A watch fires once, and never before the result of the operation that set it. An operation that fails sets no watch.
    """

    @property
    def session_id(self) -> int:
        """The id of the newest session; 0 before the first one."""

    @property
    def state(self) -> SessionState:
        """The state of the session, as far as this client knows."""

    def start(self) -> Deferred[None]:
        """Open a session; fires once the client is connected and its chroot exists, fails with ZooKeeperError."""

    def close(self) -> Deferred[None]:
        """End the session, so that its ephemeral nodes are deleted. Does not fail."""

    def add_listener(self, listener: Listener) -> None:
        """Call *listener* with the new state after every change of the state."""

    def create(
        self, path: str, value: bytes, *, ephemeral: bool = False, sequence: bool = False, make_path: bool = False
    ) -> Deferred[str]:
        """Create a node; fires with its path. A sequence node's name ends with ten digits that count up.

        *make_path* creates the missing parents first, as persistent nodes without a value. Fails with NodeExistsError, or
        with NoNodeError if there is no parent.
        """

    def get(self, path: str, watch: Watch | None = None) -> Deferred[tuple[bytes, NodeStat]]:
        """Read a node; fails with NoNodeError. The watch fires when its value changes or it is deleted."""

    def exists(self, path: str, watch: Watch | None = None) -> Deferred[NodeStat | None]:
        """Read a node's versions, None if it is missing. The watch fires when it is created, changed or deleted."""

    def children(self, path: str, watch: Watch | None = None) -> Deferred[list[str]]:
        """Read the names of a node's children, in no order; fails with NoNodeError.

        The watch fires when a child is created or deleted, or the node is deleted.
        """

    def set(self, path: str, value: bytes, version: int = ANY_VERSION) -> Deferred[NodeStat]:
        """Replace a node's value; fails with NoNodeError and BadVersionError."""

    def delete(self, path: str, version: int = ANY_VERSION) -> Deferred[None]:
        """Delete a node; fails with NoNodeError, BadVersionError and NotEmptyError."""

    def multi(self, operations: Sequence[Operation]) -> Deferred[list[Result]]:
        """Make all the operations or none; each sees the effects of those before it.

        Fails with the error of the operation that failed, whose position is ``operation_index``.
        """
