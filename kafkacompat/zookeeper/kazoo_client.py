"""The client of a real ZooKeeper, over kazoo, which only this module and `kazoo_handler` import.

Import this module only when a ZooKeeper is configured, because importing kazoo takes a noticeable part of a start.
"""

from __future__ import annotations

import logging
import ssl
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from kazoo import exceptions as kazoo_errors
from kazoo.client import KazooClient
from kazoo.protocol.states import EventType, KazooState, KeeperState, WatchedEvent, ZnodeStat
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE
from twisted.internet.defer import Deferred, DeferredSemaphore, maybeDeferred
from twisted.python.failure import Failure

from kafkacompat.storage.files.os_errors import describe_error
from kafkacompat.zookeeper.acls import NodeAccess, access_of
from kafkacompat.zookeeper.client import (
    ANY_VERSION,
    BadVersionError,
    ConnectionLossError,
    Create,
    Delete,
    Listener,
    NoAuthError,
    NodeExistsError,
    NodeStat,
    NoNodeError,
    NotEmptyError,
    Operation,
    Result,
    SessionExpiredError,
    SessionState,
    SetData,
    Watch,
    WatchEvent,
    WatchKind,
    ZooKeeperError,
)
from kafkacompat.zookeeper.kazoo_handler import KazooResult, Reactor, ReactorHandler
from kafkacompat.zookeeper.requests import Chroot, check_size, create_with_parents, ensure_path
from kafkacompat.zookeeper.session import Session, SessionEvent
from kafkacompat.zookeeper.settings import ZooKeeperSettings, ZooKeeperTlsSettings, parse_connect

log = logging.getLogger(__name__)

# kazoo logs each attempt to connect; the lines below name each change of the session once.
_KAZOO_LOG = logging.getLogger(f"{__name__}.kazoo")
_KAZOO_LOG.setLevel(logging.ERROR)

REQUESTS_AT_ONCE = 64
"""Requests under way. Passing a request to kazoo takes up to 1 ms on a busy machine, and the reactor waits meanwhile."""

CLOSE_SECONDS = 5
"""Longest wait for the end of kazoo's thread, which may hang in a connection; the session then ends by its timeout."""

_RECONNECT = {"max_tries": -1, "delay": 0.1, "backoff": 2, "max_delay": 2.0}

Value = TypeVar("Value")


class KazooZooKeeper:
    """A `ZooKeeper` over the network; raises ZooKeeperError if zookeeper.connect cannot be parsed."""

    def __init__(self, reactor: Reactor, settings: ZooKeeperSettings) -> None:
        ensemble = parse_connect(settings.connect)
        self._reactor = reactor
        self._settings = settings
        self._chroot = Chroot(ensemble.chroot)
        self._session = Session()
        self._window = DeferredSemaphore(REQUESTS_AT_ONCE)
        self._handler = ReactorHandler(reactor)
        self._kazoo = KazooClient(
            hosts=ensemble.format_servers(),
            timeout=settings.session_timeout_ms / 1000,
            handler=self._handler,
            connection_retry=_RECONNECT,
            logger=_KAZOO_LOG,
            **_tls_options(settings.tls),
        )
        self._kazoo.add_listener(self._cross_state)

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

    # Start and end

    def start(self) -> Deferred[None]:
        """See ZooKeeper.start."""
        return Deferred.fromCoroutine(self._start())

    async def _start(self) -> None:
        _check_settings(self._settings)
        try:
            await self._connect()
            await self._find_chroot()
        except Exception:
            await self.close()
            raise

    def _connect(self) -> Deferred[None]:
        """Connect; fails with ZooKeeperError after zookeeper.connection.timeout.ms."""
        connected: Deferred[None] = Deferred()
        waiting = self._reactor.callLater(self._settings.connection_timeout_ms / 1000, self._give_up, connected)

        def notice(state: SessionState) -> None:
            if state is SessionState.CONNECTED and not connected.called:
                waiting.cancel()
                connected.callback(None)

        self._session.add_listener(notice)
        self._kazoo.start_async()
        return connected

    def _give_up(self, connected: Deferred[None]) -> None:
        problem = self._handler.last_problem
        reason = "the host is unknown, or its server hangs" if problem is None else describe_error(problem)
        connect, seconds = self._settings.connect, self._settings.connection_timeout_ms / 1000
        sentence = f"zookeeper.connect={connect}: no ZooKeeper answers within {seconds:g} s ({reason})"
        connected.errback(ZooKeeperError(f"{sentence}; start ZooKeeper, or correct zookeeper.connect"))

    async def _find_chroot(self) -> None:
        """Create the chroot or require it. This read is also the first one that a server with ACLs may refuse."""
        path = self._chroot.absolute("/")
        if await self._send(lambda: self._kazoo.exists_async(path), path) is not None:
            return
        connect = self._settings.connect
        if not self._settings.create_chroot:
            advice = "correct zookeeper.connect, or start a broker with it first"
            raise ZooKeeperError(f"zookeeper.connect={connect}: ZooKeeper has no chroot {path}; {advice}")
        try:
            await ensure_path(lambda part: self._create(part, Create(part, b"")), path)
        except ZooKeeperError as problem:
            raise ZooKeeperError(
                f"zookeeper.connect={connect}: the chroot {path} cannot be created: {problem}"
            ) from problem

    def close(self) -> Deferred[None]:
        """See ZooKeeper.close."""
        self._session.apply(SessionEvent.ENDED)
        closed: Deferred[None] = Deferred()
        waiting = self._reactor.callLater(CLOSE_SECONDS, closed.callback, None)

        def finish() -> None:
            if not closed.called:
                waiting.cancel()
                closed.callback(None)

        def stop() -> None:
            try:
                self._kazoo.stop()
                self._kazoo.close()
            except Exception as problem:
                log.warning("Cannot close the connection to ZooKeeper: %s", problem)
            self._reactor.callFromThread(finish)

        threading.Thread(target=stop, name="zookeeper close", daemon=True).start()
        return closed

    # The session

    def _cross_state(self, state: str) -> None:
        """Pass a change of the state on to the reactor's thread; called in kazoo's thread."""
        identity = self._kazoo.client_id
        session_id = identity[0] if identity else 0
        has_ended = self._kazoo.client_state in (KeeperState.CLOSED, KeeperState.AUTH_FAILED)
        event = SessionEvent.ENDED if has_ended else _EVENTS[state]
        self._reactor.callFromThread(self._change_state, event, session_id)

    def _change_state(self, event: SessionEvent, session_id: int) -> None:
        before = self.state
        self._session.apply(event, session_id)
        if self.state is not before:
            _log_state(self.state, self.session_id, self._settings.connect)

    # Operations

    def create(
        self, path: str, value: bytes, *, ephemeral: bool = False, sequence: bool = False, make_path: bool = False
    ) -> Deferred[str]:
        """See ZooKeeper.create."""

        def create(path: str) -> Deferred[str]:
            return self._create_below_chroot(Create(path, value, ephemeral, sequence))

        def create_parent(path: str) -> Deferred[str]:
            return self._create_below_chroot(Create(path, b""))

        return Deferred.fromCoroutine(create_with_parents(create, create_parent, path)) if make_path else create(path)

    def _create_below_chroot(self, operation: Create) -> Deferred[str]:
        creating = maybeDeferred(lambda: self._create(self._chroot.absolute(operation.path), operation))
        return creating.addCallback(self._chroot.relative)

    def _create(self, absolute: str, operation: Create) -> Deferred[str]:
        acl = self._acl_of(operation.path)
        check_size([operation._replace(path=absolute)])

        def create() -> KazooResult:
            return cast(
                KazooResult,
                self._kazoo.create_async(absolute, operation.value, acl, operation.ephemeral, operation.sequence),
            )

        return self._send(create, absolute)

    def get(self, path: str, watch: Watch | None = None) -> Deferred[tuple[bytes, NodeStat]]:
        """See ZooKeeper.get."""
        reading = self._send_read(self._kazoo.get_async, path, watch)
        return reading.addCallback(lambda answer: (answer[0] or b"", _read_stat(answer[1])))

    def exists(self, path: str, watch: Watch | None = None) -> Deferred[NodeStat | None]:
        """See ZooKeeper.exists."""
        reading = self._send_read(self._kazoo.exists_async, path, watch)
        return reading.addCallback(lambda stat: None if stat is None else _read_stat(stat))

    def children(self, path: str, watch: Watch | None = None) -> Deferred[list[str]]:
        """See ZooKeeper.children."""
        return self._send_read(self._kazoo.get_children_async, path, watch)

    def set(self, path: str, value: bytes, version: int = ANY_VERSION) -> Deferred[NodeStat]:
        """See ZooKeeper.set."""

        def begin() -> Deferred[ZnodeStat]:
            absolute = self._chroot.absolute(path)
            check_size([SetData(absolute, value)])
            return self._send(lambda: self._kazoo.set_async(absolute, value, version), absolute)

        return maybeDeferred(begin).addCallback(_read_stat)

    def delete(self, path: str, version: int = ANY_VERSION) -> Deferred[None]:
        """See ZooKeeper.delete."""

        def begin() -> Deferred[bool]:
            absolute = self._chroot.absolute(path)
            return self._send(lambda: self._kazoo.delete_async(absolute, version), absolute)

        return maybeDeferred(begin).addCallback(lambda _: None)

    def multi(self, operations: Sequence[Operation]) -> Deferred[list[Result]]:
        """See ZooKeeper.multi."""

        def begin() -> Deferred[list[Any]]:
            absolute = [self._chroot.absolute_operation(operation) for operation in operations]
            check_size(absolute)
            return self._send(lambda: self._commit(absolute), f"{len(operations)} operations")

        return maybeDeferred(begin).addCallback(self._read_results, operations)

    def _commit(self, operations: Sequence[Operation]) -> KazooResult:
        transaction = self._kazoo.transaction()
        for operation in operations:
            if isinstance(operation, Create):
                acl = self._acl_of(self._chroot.relative(operation.path))
                transaction.create(operation.path, operation.value, acl, operation.ephemeral, operation.sequence)
            elif isinstance(operation, SetData):
                transaction.set_data(operation.path, operation.value, operation.version)
            elif isinstance(operation, Delete):
                transaction.delete(operation.path, operation.version)
            else:
                transaction.check(operation.path, operation.version)
        return cast(KazooResult, transaction.commit_async())

    def _read_results(self, results: list[Any], operations: Sequence[Operation]) -> list[Result]:
        """Return the results of a transaction; raises the error of the operation that failed.

        A server reports RolledBackError for the operations before it, and RuntimeInconsistency for those after it.
        """
        for index, (result, operation) in enumerate(zip(results, operations, strict=True)):
            if isinstance(result, Exception) and not isinstance(result, _NOT_THE_CAUSE):
                error = _translate(result, self._chroot.absolute(operation.path))
                error.operation_index = index
                raise error
        return [self._read_result(result, operation) for result, operation in zip(results, operations, strict=True)]

    def _read_result(self, result: Any, operation: Operation) -> Result:
        if isinstance(operation, Create):
            return self._chroot.relative(result)
        return _read_stat(result) if isinstance(operation, SetData) else None

    def _acl_of(self, path: str) -> Any:
        return _ACLS[access_of(path)] if self._settings.set_acl else OPEN_ACL_UNSAFE

    # Requests

    def _send_read(self, method: Callable[..., Any], path: str, watch: Watch | None) -> Deferred[Any]:
        def begin() -> Deferred[Any]:
            absolute = self._chroot.absolute(path)
            return self._send(lambda: method(absolute, self._make_watch(watch, path)), absolute)

        return maybeDeferred(begin)

    def _make_watch(self, watch: Watch | None, path: str) -> Callable[[WatchedEvent], None] | None:
        if watch is None:
            return None
        receiver = watch

        def fire(event: WatchedEvent) -> None:
            # kazoo reports to every watch that it is closed.
            if self.state is not SessionState.CLOSED:
                receiver(WatchEvent(_WATCH_KINDS[event.type], path))

        return fire

    def _send(self, call: Callable[[], Any], subject: str) -> Deferred[Any]:
        """Call a method of kazoo when few requests are under way; fires with its result."""

        def send() -> Deferred[Any]:
            self._session.check_connected()
            answer: Deferred[Any] = Deferred()
            result: KazooResult = call()
            result.rawlink(lambda result: self._settle(answer, result, subject))
            return answer

        return self._window.run(send)

    def _settle(self, answer: Deferred[Any], result: KazooResult, subject: str) -> None:
        if result.exception is None:
            answer.callback(result.value)
            return
        error = _translate(result.exception, subject)
        if isinstance(error, ConnectionLossError):
            # kazoo fails the requests before it reports the state.
            self._change_state(SessionEvent.DISCONNECTED, 0)
        answer.errback(Failure(error))


_EVENTS = {
    KazooState.CONNECTED: SessionEvent.ESTABLISHED,
    KazooState.SUSPENDED: SessionEvent.DISCONNECTED,
    KazooState.LOST: SessionEvent.EXPIRED,
}

_WATCH_KINDS = {
    EventType.CREATED: WatchKind.CREATED,
    EventType.CHANGED: WatchKind.CHANGED,
    EventType.DELETED: WatchKind.DELETED,
    EventType.CHILD: WatchKind.CHILDREN,
    EventType.NONE: WatchKind.LOST,
}

_ACLS = {
    NodeAccess.OPEN: OPEN_ACL_UNSAFE,
    NodeAccess.READABLE: [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE],
    NodeAccess.PRIVATE: CREATOR_ALL_ACL,
}

_NOT_THE_CAUSE = (kazoo_errors.RolledBackError, kazoo_errors.RuntimeInconsistency)

_ERRORS: tuple[tuple[type[Exception], type[ZooKeeperError], str], ...] = (
    (kazoo_errors.NodeExistsError, NodeExistsError, "{}: the node exists in ZooKeeper already"),
    (kazoo_errors.NoNodeError, NoNodeError, "{}: ZooKeeper has no such node, or no parent for it"),
    (kazoo_errors.BadVersionError, BadVersionError, "{}: the node has another version than expected"),
    (kazoo_errors.NotEmptyError, NotEmptyError, "{}: the node has children, so it cannot be deleted"),
    (kazoo_errors.NoAuthError, NoAuthError, "{}: the node's ACL does not allow this; check this client's certificate"),
    (
        kazoo_errors.InvalidACLError,
        NoAuthError,
        "{}: ZooKeeper does not know this client, which zookeeper.set.acl needs",
    ),
    (kazoo_errors.AuthFailedError, NoAuthError, "{}: ZooKeeper rejects the credentials of this client"),
    (
        kazoo_errors.ConnectionLoss,
        ConnectionLossError,
        "{}: the connection to ZooKeeper was lost before the answer came",
    ),
    (kazoo_errors.SessionMovedError, ConnectionLossError, "{}: the session moved to another ZooKeeper server"),
    (kazoo_errors.OperationTimeoutError, ConnectionLossError, "{}: ZooKeeper did not answer in time"),
    (kazoo_errors.RequestTimeoutError, ConnectionLossError, "{}: ZooKeeper did not answer in time"),
    (kazoo_errors.SessionExpiredError, SessionExpiredError, "{}: the session with ZooKeeper has expired"),
    (kazoo_errors.NoChildrenForEphemeralsError, ZooKeeperError, "{}: the parent is ephemeral, so it has no children"),
)


def _translate(problem: Exception, subject: str) -> ZooKeeperError:
    """Return the error in the terms of `client`."""
    for kazoo_error, error, sentence in _ERRORS:
        if isinstance(problem, kazoo_error):
            return error(sentence.format(subject))
    return ZooKeeperError(f"{subject}: ZooKeeper answers {type(problem).__name__} {problem}".rstrip())


def _read_stat(stat: ZnodeStat) -> NodeStat:
    return NodeStat(stat.version, stat.czxid, stat.mzxid, stat.ephemeralOwner, stat.ctime, stat.mtime, stat.numChildren)


def _log_state(state: SessionState, session_id: int, connect: str) -> None:
    if state is SessionState.CONNECTED:
        log.info("Connected to ZooKeeper %s: session 0x%x", connect, session_id & 0xFFFF_FFFF_FFFF_FFFF)
    elif state is SessionState.SUSPENDED:
        log.warning("Lost the connection to ZooKeeper %s; connecting again", connect)
    elif state is SessionState.LOST:
        log.warning("The session with ZooKeeper %s has expired; opening a new one", connect)
    else:
        log.error("The client of ZooKeeper %s has stopped; restart the broker", connect)


def _tls_options(tls: ZooKeeperTlsSettings | None) -> dict[str, Any]:
    if tls is None:
        return {}
    return {
        "use_ssl": True,
        "ca": tls.ca_file,
        "certfile": tls.certificate_file,
        "keyfile": tls.key_file,
        "keyfile_password": tls.key_password,
        "check_hostname": tls.verify_host_name,
    }


def _check_settings(settings: ZooKeeperSettings) -> None:
    """Raise ZooKeeperError for settings with which no connection comes about, in a sentence for the user."""
    tls = settings.tls
    if settings.set_acl and (tls is None or tls.certificate_file is None):
        advice = "configure zookeeper.ssl.keystore.location, or set zookeeper.set.acl=false"
        raise ZooKeeperError(f"zookeeper.set.acl=true needs a client certificate; {advice}")
    if tls is None:
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if tls.ca_file is not None:
            context.load_verify_locations(tls.ca_file)
    except OSError as problem:
        raise ZooKeeperError(
            f"zookeeper.ssl.truststore.location={tls.ca_file}: {describe_error(problem)}; name a file in PEM"
        ) from problem
    try:
        if tls.certificate_file is not None:
            context.load_cert_chain(tls.certificate_file, tls.key_file, tls.key_password)
    except OSError as problem:
        raise ZooKeeperError(
            f"zookeeper.ssl.keystore.location={tls.certificate_file}: {describe_error(problem)}; "
            "name a file in PEM, and its zookeeper.ssl.keystore.password"
        ) from problem
