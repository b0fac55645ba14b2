"""How a client reaches ZooKeeper: the properties ``zookeeper.*`` as values."""

from __future__ import annotations

from typing import NamedTuple

from kafkacompat.zookeeper.client import ZooKeeperError
from kafkacompat.zookeeper.requests import Chroot

DEFAULT_PORT = 2181
DEFAULT_TIMEOUT_MS = 18_000
"""Kafka's default of zookeeper.session.timeout.ms, and so of zookeeper.connection.timeout.ms."""


class ZooKeeperTlsSettings(NamedTuple):
    """Files in PEM for TLS.

    ``ca_file`` is zookeeper.ssl.truststore.location (None: the system's authorities). ``certificate_file`` and ``key_file``
    may be the same file, zookeeper.ssl.keystore.location. ``verify_host_name`` is
    zookeeper.ssl.endpoint.identification.algorithm=HTTPS.
    """

    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    key_password: str | None = None
    verify_host_name: bool = True


class ZooKeeperSettings(NamedTuple):
    """``connect`` is zookeeper.connect: ``host1:2181,host2:2181/chroot``.

    With ``set_acl`` (zookeeper.set.acl) only clients with this client's certificate may change its nodes. With
    ``create_chroot`` the start creates a chroot that is missing, as Kafka's does; tools leave it out.
    """

    connect: str
    session_timeout_ms: int = DEFAULT_TIMEOUT_MS
    connection_timeout_ms: int = DEFAULT_TIMEOUT_MS
    set_acl: bool = False
    create_chroot: bool = True
    tls: ZooKeeperTlsSettings | None = None


class Ensemble(NamedTuple):
    """The parsed value of zookeeper.connect."""

    servers: tuple[tuple[str, int], ...]
    chroot: str

    def format_servers(self) -> str:
        """Return the servers without the chroot, each with its port."""
        return ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.servers)


def parse_connect(connect: str) -> Ensemble:
    """Parse zookeeper.connect; raises ZooKeeperError with a sentence for the user."""
    servers, slash, chroot = connect.strip().partition("/")
    if "," in chroot:
        advice = "name the chroot once, after the last server, as in host1:2181,host2:2181/kafka"
        raise ZooKeeperError(f"zookeeper.connect={connect} has a server after the chroot; {advice}")
    try:
        return Ensemble(tuple(map(_parse_server, servers.split(","))), Chroot(slash + chroot).path)
    except ValueError as problem:
        advice = "write it as host1:2181,host2:2181/chroot"
        raise ZooKeeperError(f"zookeeper.connect={connect} names no server: {problem}; {advice}") from None
    except ZooKeeperError as problem:
        raise ZooKeeperError(f"zookeeper.connect={connect}: the chroot {problem}") from None


def _parse_server(text: str) -> tuple[str, int]:
    """Parse ``host``, ``host:port`` or ``[address]:port``; raises ValueError with the reason."""
    text = text.strip()
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    else:
        host, _, port = text.partition(":")
    if not host:
        raise ValueError("a host is missing")
    if port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError(f"{port!r} is not a port")
    return host, int(port or DEFAULT_PORT)
