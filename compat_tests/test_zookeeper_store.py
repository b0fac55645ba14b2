"""The metadata store of a cluster on a real ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.zookeeper import ZooKeeperServer, ZooKeeperWorld, new_chroot
from kafkacompat.metadata.store import ABSENT, StoreChange
from kafkacompat.metadata.zookeeper_store import FencedError, ZooKeeperStore
from kafkacompat.zookeeper.client import SessionState
from tests.kafkacompat.metadata.store_contract import STATES, TOPIC, StoreContract, Subject


@pytest.fixture
def world(zookeeper: ZooKeeperServer) -> Iterator[ZooKeeperWorld]:
    world = ZooKeeperWorld(zookeeper, new_chroot())
    yield world
    world.close()


@pytest.fixture
def subject(world: ZooKeeperWorld) -> Subject:
    return Subject(ZooKeeperStore(world.connect("/kafka"), world.reactor), world.run)


class TestContract(StoreContract):
    """The contract on ZooKeeper 3.9.5."""


def test_a_change_of_several_megabytes_is_several_transactions(world: ZooKeeperWorld) -> None:
    client = world.connect()
    store = ZooKeeperStore(client, world.reactor)
    keys = [TOPIC, *(f"{TOPIC}/partitions/{index}/state" for index in range(3_000))]
    world.run(store.compare_and_set([StoreChange(key, ABSENT, bytes(200)) for key in keys]))
    assert world.run(store.load()).keys() == set(keys)
    assert client.state is SessionState.CONNECTED
    world.run(store.compare_and_set([StoreChange(key, 0, None) for key in keys]))
    assert world.run(client.children("/brokers/topics")) == []


def test_a_former_controller_is_fenced(world: ZooKeeperWorld) -> None:
    client = world.connect()
    store = ZooKeeperStore(client, world.reactor, lambda: ("/controller_epoch", 0))
    world.run(client.create("/controller_epoch", b"1"))
    world.run(store.compare_and_set([StoreChange(TOPIC, ABSENT, b"1")]))
    world.run(client.set("/controller_epoch", b"2"))
    with pytest.raises(FencedError):
        world.run(store.compare_and_set([StoreChange(STATES[0], ABSENT, b"1")]))
    assert world.run(store.load()).keys() == {TOPIC}
