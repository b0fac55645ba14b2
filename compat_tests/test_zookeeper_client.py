"""The broker's client of ZooKeeper on a real one: the contract, a server that goes away, settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.security import READ_ACL_UNSAFE
from twisted.python.failure import Failure

from compat_tests.ports import free_port
from compat_tests.zookeeper import SESSION_TIMEOUT_MS, ZooKeeperServer, ZooKeeperWorld, new_chroot
from kafkacompat.zookeeper.client import (
    ConnectionLossError,
    Create,
    NoAuthError,
    SessionState,
    WatchEvent,
    WatchKind,
    ZooKeeperError,
)
from kafkacompat.zookeeper.settings import ZooKeeperSettings, ZooKeeperTlsSettings
from tests.kafkacompat.zookeeper.contract import ZooKeeperContract


@pytest.fixture
def world(zookeeper: ZooKeeperServer) -> Iterator[ZooKeeperWorld]:
    world = ZooKeeperWorld(zookeeper, new_chroot())
    yield world
    world.close()


@pytest.fixture
def own_world(tmp_path: Path) -> Iterator[ZooKeeperWorld]:
    """A server of its own, for a test that stops it."""
    with ZooKeeperServer(tmp_path / "zookeeper") as server:
        world = ZooKeeperWorld(server, new_chroot())
        yield world
        world.close()


class TestContract(ZooKeeperContract):
    """The contract over kazoo on ZooKeeper 3.9.5."""


def test_a_session_outlives_a_server_that_is_killed_and_started_again(own_world: ZooKeeperWorld) -> None:
    client = own_world.connect()
    states, events = list[SessionState](), list[WatchEvent]()
    client.add_listener(states.append)
    own_world.run(client.create("/id", b"1", ephemeral=True))
    own_world.run(client.get("/id", events.append))
    session_id = client.session_id
    own_world.server.kill()
    own_world.until(lambda: states)
    with pytest.raises(ConnectionLossError):
        own_world.run(client.get("/id"))
    own_world.server.start()
    own_world.until(lambda: states[1:])
    assert states == [SessionState.SUSPENDED, SessionState.CONNECTED] and client.session_id == session_id
    assert events == [WatchEvent(WatchKind.LOST, "/id")]
    assert own_world.run(client.get("/id"))[1].ephemeral_owner == session_id


def test_a_change_under_way_while_the_server_stands_still_fails_once_the_connection_is_given_up(
    own_world: ZooKeeperWorld,
) -> None:
    client = own_world.connect()
    states: list[SessionState] = []
    client.add_listener(states.append)
    with own_world.server.suspended():
        creating = client.create("/a", b"")
        states_at_failure: list[SessionState] = []

        def note_state(failure: Failure) -> Failure:
            states_at_failure.append(client.state)
            return failure

        creating.addErrback(note_state)
        with pytest.raises(ConnectionLossError):
            own_world.run(creating)
        assert states_at_failure == [SessionState.SUSPENDED]
    own_world.until(lambda: client.state is SessionState.CONNECTED)
    # The server may have made the change when it went on.
    own_world.run(client.exists("/a"))


def test_a_server_that_is_away_is_named_in_one_sentence(zookeeper: ZooKeeperServer) -> None:
    world = ZooKeeperWorld(zookeeper, "")
    connect = f"127.0.0.1:{free_port()}/kafka"
    client = world.make_client(ZooKeeperSettings(connect, connection_timeout_ms=500))
    with pytest.raises(ZooKeeperError) as problem:
        world.run(client.start())
    assert str(problem.value) == (
        f"zookeeper.connect={connect}: no ZooKeeper answers within 0.5 s (Connection refused); "
        "start ZooKeeper, or correct zookeeper.connect"
    )
    assert client.state is SessionState.CLOSED


def test_a_server_that_hangs_ends_a_start_too(own_world: ZooKeeperWorld) -> None:
    settings = ZooKeeperSettings(own_world.server.connect, SESSION_TIMEOUT_MS, connection_timeout_ms=300)
    client = own_world.make_client(settings)
    with own_world.server.suspended(), pytest.raises(ZooKeeperError, match="its server hangs"):
        own_world.run(client.start())
    assert client.state is SessionState.CLOSED


def test_a_client_tries_every_server_of_an_ensemble(zookeeper: ZooKeeperServer) -> None:
    world = ZooKeeperWorld(zookeeper, "")
    connect = f"127.0.0.1:{free_port()},{zookeeper.connect}{new_chroot()}/deep"
    client = world.make_client(ZooKeeperSettings(connect, session_timeout_ms=SESSION_TIMEOUT_MS))
    world.run(client.start())
    assert world.run(client.children("/")) == []
    world.close()


def test_a_missing_chroot_is_created_or_named(zookeeper: ZooKeeperServer) -> None:
    world = ZooKeeperWorld(zookeeper, "")
    connect = f"{zookeeper.connect}{new_chroot()}"
    settings = ZooKeeperSettings(connect, create_chroot=False)
    with pytest.raises(
        ZooKeeperError, match=r"ZooKeeper has no chroot /chroot-\d+; correct zookeeper.connect, or start"
    ):
        world.run(world.make_client(settings).start())
    world.run(world.make_client(settings._replace(create_chroot=True)).start())
    world.run(world.make_client(settings).start())
    world.close()


def test_a_chroot_below_an_ephemeral_node_cannot_be_created(world: ZooKeeperWorld) -> None:
    world.run(world.connect().create("/a", b"", ephemeral=True))
    connect = f"{world.server.connect}{world.chroot}/a/b"
    with pytest.raises(ZooKeeperError, match=r"cannot be created: .* the parent is ephemeral"):
        world.run(world.make_client(ZooKeeperSettings(connect)).start())


def test_files_for_tls_are_checked_before_the_first_connection(world: ZooKeeperWorld, tmp_path: Path) -> None:
    settings = ZooKeeperSettings(world.server.connect)
    cases = {
        "zookeeper.set.acl=true needs a client certificate": settings._replace(set_acl=True),
        "zookeeper.ssl.truststore.location=": settings._replace(
            tls=ZooKeeperTlsSettings(ca_file=str(tmp_path / "none"))
        ),
        "zookeeper.ssl.keystore.location=": settings._replace(tls=ZooKeeperTlsSettings(certificate_file=__file__)),
    }
    for sentence, wrong in cases.items():
        with pytest.raises(ZooKeeperError, match=sentence):
            world.run(world.make_client(wrong).start())


def test_a_transaction_without_access_fails_with_its_operation(world: ZooKeeperWorld) -> None:
    client = world.connect()
    world.run(client.create("/a", b""))
    kazoo = KazooClient(world.server.connect)
    kazoo.start()
    kazoo.set_acls(f"{world.chroot}/a", READ_ACL_UNSAFE)
    kazoo.stop()
    kazoo.close()
    with pytest.raises(NoAuthError) as problem:
        world.run(client.multi([Create("/b", b""), Create("/a/b", b"")]))
    assert problem.value.operation_index == 1
    with pytest.raises(NoAuthError, match="the node's ACL does not allow this"):
        world.run(client.set("/a", b""))
