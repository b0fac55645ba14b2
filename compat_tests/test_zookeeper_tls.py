"""The client of ZooKeeper over TLS with certificates of both sides, and the ACLs of zookeeper.set.acl."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from kazoo.client import KazooClient
from kazoo.security import ACL
from twisted.internet.defer import Deferred

from compat_tests.certificates import Authority
from compat_tests.ports import free_port
from compat_tests.zookeeper import SESSION_TIMEOUT_MS, ZooKeeperServer, ZooKeeperWorld, new_chroot
from kafkacompat.zookeeper.client import Create, NoAuthError, ZooKeeperError
from kafkacompat.zookeeper.settings import ZooKeeperSettings, ZooKeeperTlsSettings


class Secured(NamedTuple):
    """A server with a port for TLS beside the plain one."""

    world: ZooKeeperWorld
    settings: ZooKeeperSettings


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ZooKeeperServer, Authority, int]]:
    folder = tmp_path_factory.mktemp("zookeeper-tls")
    authority = Authority(folder / "certificates")
    port = free_port()
    properties = {
        "secureClientPort": str(port),
        "secureClientPortAddress": "127.0.0.1",
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "authProvider.x509": "org.apache.zookeeper.server.auth.X509AuthenticationProvider",
        "ssl.keyStore.location": str(authority.issue("server")),
        "ssl.keyStore.type": "PEM",
        "ssl.trustStore.location": str(authority.certificate),
        "ssl.trustStore.type": "PEM",
        "ssl.clientAuth": "need",
    }
    with ZooKeeperServer(folder / "server", properties) as running:
        yield running, authority, port


@pytest.fixture
def secured(server: tuple[ZooKeeperServer, Authority, int]) -> Iterator[Secured]:
    running, authority, port = server
    world = ZooKeeperWorld(running, new_chroot())
    broker = str(authority.issue("broker"))
    tls = ZooKeeperTlsSettings(str(authority.certificate), broker, broker)
    settings = ZooKeeperSettings(f"127.0.0.1:{port}{world.chroot}", SESSION_TIMEOUT_MS, 10_000, tls=tls)
    yield Secured(world, settings)
    world.close()


def test_nodes_belong_to_the_client_with_the_certificate(secured: Secured) -> None:
    world = secured.world
    client = world.make_client(secured.settings._replace(set_acl=True))
    world.run(client.start())
    world.run(client.create("/brokers/topics", b"1", make_path=True))
    world.run(client.multi([Create("/config", b""), Create("/config/users", b"secret"), Create("/consumers", b"")]))
    stranger = world.connect()
    assert world.run(stranger.get("/brokers/topics"))[0] == b"1"
    world.run(stranger.create("/consumers/g", b""))
    refusals: list[Deferred[Any]] = [
        stranger.set("/brokers/topics", b"2"),
        stranger.create("/brokers/topics/t", b""),
        stranger.create("/other", b""),
        stranger.get("/config/users"),
    ]
    for refused in refusals:
        with pytest.raises(NoAuthError):
            world.run(refused)
    other = world.make_client(secured.settings)
    world.run(other.start())
    world.run(other.set("/brokers/topics", b"2"))
    kazoo = KazooClient(world.server.connect)
    kazoo.start()
    acls: list[ACL] = kazoo.get_acls(f"{world.chroot}/brokers/topics")[0]
    kazoo.stop()
    kazoo.close()
    assert [(acl.perms, tuple(acl.id)) for acl in acls] == [(31, ("x509", "CN=broker")), (1, ("world", "anyone"))]


@pytest.mark.parametrize("wrong", ["authority", "no certificate", "plain port"])
def test_a_connection_that_tls_refuses_is_named(secured: Secured, tmp_path: Path, wrong: str) -> None:
    tls = secured.settings.tls
    assert tls is not None
    settings = {
        "authority": secured.settings._replace(tls=tls._replace(ca_file=str(Authority(tmp_path).certificate))),
        "no certificate": secured.settings._replace(tls=ZooKeeperTlsSettings(tls.ca_file)),
        "plain port": secured.settings._replace(connect=secured.world.server.connect),
    }[wrong]._replace(connection_timeout_ms=1_000)
    reason = {"authority": "certificate verify failed", "no certificate": "", "plain port": "SSL|TLS|EOF"}[wrong]
    with pytest.raises(ZooKeeperError, match=rf"no ZooKeeper answers within 1 s.*{reason}.*; start ZooKeeper"):
        secured.world.run(secured.world.make_client(settings).start())
