"""The ZooKeeper servers of a chaos run: one, or an ensemble of three."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from kazoo.client import KazooClient

from compat_tests.chaos.network import Host
from compat_tests.waiting import until
from compat_tests.zookeeper import ZooKeeperServer

PORT, QUORUM_PORT, ELECTION_PORT = 2181, 2888, 3888
SERVING_SECONDS = 30
_SUPER_SECRET = 0xB3415C00
_JAVA_MULTIPLIER, _JAVA_INCREMENT, _JAVA_BITS = 0x5DEECE66D, 0xB, 48


class ZooKeeperEnsemble:
    """Servers by the names of their hosts."""

    def __init__(self, folder: Path, hosts: Sequence[Host]) -> None:
        members = {
            f"server.{number}": f"{host.address}:{QUORUM_PORT}:{ELECTION_PORT}" for number, host in enumerate(hosts, 1)
        }
        properties = {"initLimit": "10", "syncLimit": "5", **members} if len(hosts) > 1 else {}
        self.servers: dict[str, ZooKeeperServer] = {}
        for number, host in enumerate(hosts, 1):
            server = ZooKeeperServer(folder / host.name, properties)
            server.host, server.prefix, server.port = host.address, host.prefix, PORT
            data = server.folder / "data"
            data.mkdir(parents=True)
            (data / "myid").write_text(f"{number}\n")
            self.servers[host.name] = server

    @property
    def connect(self) -> str:
        """Value of zookeeper.connect without a chroot."""
        return ",".join(server.connect for server in self.servers.values())

    def start(self) -> None:
        """Start all servers, and wait until one of them serves."""
        with ThreadPoolExecutor(len(self.servers)) as threads:
            list(threads.map(ZooKeeperServer.start, self.servers.values()))
        until(self.find_leader, timeout_seconds=SERVING_SECONDS)

    def kill(self) -> None:
        """End all servers with SIGKILL."""
        for server in self.servers.values():
            server.kill()

    def find_leader(self) -> str:
        """Return the host of the server that leads, or of the only one; "" if there is none."""
        for name, server in self.servers.items():
            if re.search(rb"^Mode: (leader|standalone)", server.command(b"srvr"), re.MULTILINE):
                return name
        return ""

    def find_sessions(self) -> list[tuple[str, int]]:
        """Return the addresses of the clients with their sessions."""
        answers = b"".join(server.command(b"cons") for server in self.servers.values())
        pairs = re.findall(rb"^ /([0-9.]+):\d+\[\d+\]\(.*?sid=0x([0-9a-f]+)", answers, re.MULTILINE)
        return [(address.decode(), int(session, 16)) for address, session in pairs]

    def expire(self, session: int) -> None:
        """End a client's session: another connection takes it over and closes it."""
        thief = KazooClient(self.connect, client_id=(session, session_password(session)), timeout=4.0)
        with closing(thief):
            thief.start()
            thief.stop()


def session_password(session: int) -> bytes:
    """Return the password that ZooKeeper gives a session: 16 bytes of java.util.Random with the session's id as its seed."""
    state = (session ^ _SUPER_SECRET ^ _JAVA_MULTIPLIER) & ((1 << _JAVA_BITS) - 1)
    password = b""
    for _ in range(4):
        state = (state * _JAVA_MULTIPLIER + _JAVA_INCREMENT) & ((1 << _JAVA_BITS) - 1)
        password += (state >> 16 & 0xFFFFFFFF).to_bytes(4, "little")
    return password
