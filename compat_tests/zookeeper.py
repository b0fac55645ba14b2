"""Apache ZooKeeper 3.9.5 as a process, and the broker's client of it in this process."""

from __future__ import annotations

import contextlib
import itertools
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from kazoo.client import KazooClient
from twisted.internet.defer import Deferred
from twisted.internet.selectreactor import SelectReactor

from compat_tests.java_tools import SHORT_LIVED, java_command
from compat_tests.ports import free_port
from compat_tests.processes import suspend_process
from compat_tests.waiting import until
from kafkacompat.zookeeper.client import ZooKeeper
from kafkacompat.zookeeper.kazoo_client import KazooZooKeeper
from kafkacompat.zookeeper.kazoo_handler import Reactor
from kafkacompat.zookeeper.settings import ZooKeeperSettings
from tests.kafkacompat.metadata.deferreds import has_fired, outcome

if TYPE_CHECKING:
    from typing_extensions import Self

POM = Path(__file__).resolve().parent / "java" / "zookeeper" / "pom.xml"

SESSION_TIMEOUT_MS = 4_000
"""Timeout of the tests' sessions; a server with ticks of 500 ms allows 1 s to 10 s."""

TIMEOUT_SECONDS = 30

Result = TypeVar("Result")


class ZooKeeperServer:
    """One server over one folder; it can be killed, suspended and started again on the same port.

    ``prefix`` is a command that runs the server's, as in a network of its own, where it has the address ``host``.
    """

    host = "127.0.0.1"
    prefix: Sequence[str] = ()

    def __init__(self, folder: Path, properties: Mapping[str, str] | None = None, jvm: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.port = free_port()
        self._jvm = jvm
        self._properties = dict(properties or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def connect(self) -> str:
        """Value of zookeeper.connect without a chroot."""
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "ZooKeeper is not running"
        return self._process.pid

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start the process; returns once it answers ``ruok``."""
        self.folder.mkdir(parents=True, exist_ok=True)
        config = self.folder / "zoo.cfg"
        properties = {
            "tickTime": "500",
            "dataDir": str(self.folder / "data"),
            "clientPortAddress": self.host,
            "clientPort": str(self.port),
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "*",
            "maxClientCnxns": "0",
            **self._properties,
        }
        config.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        jvm = (*SHORT_LIVED, *self._jvm, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
        main_class = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        command = [*self.prefix, *java_command(main_class, [str(config)], pom=POM, jvm=jvm, heap="128m")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            until(self._is_ready_or_ended, timeout_seconds=TIMEOUT_SECONDS)
            assert self._process.poll() is None, f"ZooKeeper did not start:\n{self.log()[-4000:]}"
        except BaseException:
            self.kill()
            raise

    def _is_ready_or_ended(self) -> bool:
        assert self._process is not None
        return self._process.poll() is not None or self.command(b"ruok") == b"imok"

    def command(self, word: bytes) -> bytes:
        """Return the answer to a command of four letters; empty without an answer."""
        try:
            with socket.create_connection((self.host, self.port), timeout=1) as connection:
                connection.sendall(word)
                return b"".join(iter(lambda: connection.recv(65_536), b""))
        except OSError:
            return b""

    def log(self) -> str:
        """Return the server's log so far."""
        return (self.folder / "log").read_text(errors="replace")

    def kill(self) -> None:
        """End the process with SIGKILL; acknowledged changes are on its disk."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """Suspend the process during the block: connections stay open without answers."""
        suspend_process(self.pid)
        try:
            yield
        finally:
            assert self._process is not None
            self._process.send_signal(signal.SIGCONT)


class ZooKeeperWorld:
    """Clients of a server below *chroot*, with a reactor that runs while something is awaited."""

    def __init__(self, server: ZooKeeperServer, chroot: str) -> None:
        self.server = server
        self.chroot = chroot
        self.reactor = cast(Reactor, _REACTOR)
        self._clients: list[KazooZooKeeper] = []

    def make_client(self, settings: ZooKeeperSettings) -> KazooZooKeeper:
        """Return a client that is not started; `close` closes it."""
        client = KazooZooKeeper(self.reactor, settings)
        self._clients.append(client)
        return client

    def connect(self, chroot: str = "") -> KazooZooKeeper:
        """Return a client that is started."""
        connect = f"{self.server.connect}{self.chroot}{chroot}"
        client = self.make_client(ZooKeeperSettings(connect, session_timeout_ms=SESSION_TIMEOUT_MS))
        self.run(client.start())
        return client

    def run(self, deferred: Deferred[Result]) -> Result:
        """Return the result of a Deferred, or raise its error."""
        self.until(lambda: has_fired(deferred))
        return outcome(deferred)

    def until(self, check: Callable[[], object]) -> None:
        """Run the reactor until *check* returns something true."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not check():
            assert time.monotonic() < deadline, f"still not so after {TIMEOUT_SECONDS} s"
            _REACTOR.iterate(0.02)

    def expire(self, client: ZooKeeper) -> None:
        """End a client's session: another connection takes it over and closes it."""
        kazoo = cast(KazooZooKeeper, client)._kazoo
        thief = KazooClient(self.server.connect, client_id=kazoo.client_id, timeout=SESSION_TIMEOUT_MS / 1000)
        thief.start()
        thief.stop()
        thief.close()

    def close(self) -> None:
        """Close every client."""
        for client in self._clients:
            self.run(client.close())


_REACTOR = SelectReactor()
_NUMBERS = itertools.count()


def new_chroot() -> str:
    """Return a chroot that no other test of this process uses."""
    return f"/chroot-{next(_NUMBERS)}"
