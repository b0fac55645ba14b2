"""A broker's place in the cluster: what keeps it from joining changes nothing, and its own old registration goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.cluster.errors import ClusterError
from kafkacompat.cluster.registration import BrokerRegistration
from kafkacompat.metadata.image import BrokerImage
from kafkacompat.metadata.store import StoreError
from kafkacompat.metadata.znodes.brokers import ProcessHome, decode_home, encode_broker
from kafkacompat.metadata.znodes.paths import PERSISTENT_PATHS
from tests.kafkacompat.metadata.deferreds import outcome
from tests.kafkacompat.zookeeper.memory_world import MemoryWorld

OWN = "4L6g3nShT-eMCtK--X86sw"
OTHER = "AAAAAAAAAAAAAAAAAAAAAA"
ADDRESSES = {"PLAINTEXT": ("host", 9092)}

SESSION_TIMEOUT_S = 18.0
HOME = ProcessHome(frozenset(("directory 1", "directory 2")), "this boot")

Result = TypeVar("Result")


class RegistrationWorld(MemoryWorld):
    """The registration of broker 1."""

    def __init__(self) -> None:
        super().__init__()
        self.client = self.connect()
        self.registration = BrokerRegistration(self.client, 1, self.clock, SESSION_TIMEOUT_S)
        self.registration.home = HOME

    def wait(self, work: Any) -> Any:
        """Let up to a minute pass until *work* is done, and return its result."""
        done = Deferred.fromCoroutine(work)
        for _ in range(600):
            self.settle()
            if done.called:
                break
            self.clock.advance(0.1)
        return outcome(done)

    def create(self, path: str, value: bytes, ephemeral: bool = False) -> None:
        self.run(self.connect().create(path, value, ephemeral=ephemeral, make_path=True))


def registration_at(port: int, home: ProcessHome | None = None) -> bytes:
    image = BrokerImage(1, None, {"PLAINTEXT": ("host", port)}, security_protocols={"PLAINTEXT": "PLAINTEXT"})
    return encode_broker(image, 0, home=home)


@pytest.fixture
def world() -> RegistrationWorld:
    return RegistrationWorld()


def test_an_empty_tree_receives_a_new_id(world: RegistrationWorld) -> None:
    assert world.wait(world.registration.find_cluster_id(None, ADDRESSES)) is None
    assert world.wait(world.registration.join(OWN)) == OWN
    assert set(PERSISTENT_PATHS) < world.server.contents().keys()
    assert world.wait(world.registration.find_cluster_id(OWN, ADDRESSES)) == OWN


def test_the_first_broker_decides_about_the_id(world: RegistrationWorld) -> None:
    world.wait(world.registration.join(OWN))
    assert world.wait(world.registration.join(OTHER)) == OWN


CLUSTER = ("/cluster/id", b'{"version":"1","id":"%s"}' % OTHER.encode())
REFUSED: dict[str, tuple[tuple[str, bytes] | None, type[Exception], str]] = {
    "directories of a cluster and an empty chroot": (None, ClusterError, "holds no cluster.*metadata import"),
    "directories of another cluster": (CLUSTER, ClusterError, f"leads to {OTHER}: correct"),
    "a damaged id": (("/cluster/id", b"{"), StoreError, "/cluster/id"),
    "a damaged controller": (("/controller", b"x"), StoreError, "/controller"),
    "a KRaft controller": (
        ("/controller", b'{"version":2,"brokerid":3000,"timestamp":"1","kraftControllerEpoch":5}'),
        ClusterError,
        "KRaft controller has taken over",
    ),
    "a migration": (
        (
            "/migration",
            b'{"version":0,"kraft_controller_id":3000,"kraft_controller_epoch":5,"kraft_metadata_offset":7,'
            b'"kraft_metadata_epoch":4}',
        ),
        ClusterError,
        "KRaft controller 3000 migrates",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_tree_that_does_not_fit_is_refused_and_stays_as_it_is(world: RegistrationWorld, case: str) -> None:
    node, error, reason = REFUSED[case]
    if node is not None:
        world.create(*node)
    before = world.server.contents()
    with pytest.raises(error, match=reason):
        world.wait(world.registration.find_cluster_id(OWN, ADDRESSES))
    assert world.server.contents() == before


def find_id(world: RegistrationWorld) -> object:
    return world.wait(world.registration.find_cluster_id(None, ADDRESSES))


def register(world: RegistrationWorld) -> object:
    protocols = {"PLAINTEXT": "PLAINTEXT"}
    return world.wait(world.registration.register(BrokerImage(1, None, ADDRESSES, security_protocols=protocols)))


STEPS = pytest.mark.parametrize("step", [find_id, register])


@STEPS
def test_a_broker_of_another_program_at_other_addresses_is_another_one(
    world: RegistrationWorld, step: Callable[[RegistrationWorld], object]
) -> None:
    world.create("/brokers/ids/1", registration_at(9999), ephemeral=True)
    with pytest.raises(ClusterError, match="broker 1 is running already at PLAINTEXT://host:9999: set another"):
        step(world)


@STEPS
def test_a_process_with_other_directories_is_another_broker_at_any_address(
    world: RegistrationWorld, step: Callable[[RegistrationWorld], object]
) -> None:
    home = ProcessHome(frozenset(("directory 3",)), HOME.boot_id)
    world.create("/brokers/ids/1", registration_at(9092, home), ephemeral=True)
    reason = (
        r"running already at PLAINTEXT://host:9092 with other log directories: .* or start this one again in 18 s if"
    )
    with pytest.raises(ClusterError, match=reason):
        step(world)


@pytest.mark.parametrize("port", [9092, 9999])
def test_the_registration_of_a_process_that_held_these_directories_is_replaced(
    world: RegistrationWorld, port: int
) -> None:
    last = ProcessHome(frozenset(("directory 2", "a directory that failed")), HOME.boot_id)
    world.create("/brokers/ids/1", registration_at(port, last), ephemeral=True)
    began = world.clock.seconds()
    find_id(world)
    register(world)
    assert world.clock.seconds() - began < 1
    value, stat = world.run(world.client.get("/brokers/ids/1"))
    assert (stat.ephemeral_owner, stat.czxid) == (world.client.session_id, world.registration.epoch)
    assert decode_home(1, value) == HOME


UNPROVED = {
    "Kafka's": None,
    "of another boot": ProcessHome(HOME.directory_ids, "another boot"),
    "of an unknown boot": ProcessHome(HOME.directory_ids, ""),
}


@pytest.mark.parametrize("case", UNPROVED)
def test_a_registration_without_a_proof_of_its_end_is_waited_for(
    world: RegistrationWorld, case: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    other = world.connect()
    world.run(other.create("/brokers/ids/1", registration_at(9092, UNPROVED[case]), ephemeral=True, make_path=True))
    find_id(world)
    world.clock.callLater(17, world.server.expire, other.session_id)
    began = world.clock.seconds()
    register(world)
    assert 17 <= world.clock.seconds() - began < 18
    assert world.registration.epoch > 0
    assert caplog.messages.count("Waiting for the end of the session that has registered broker 1") == 1


@pytest.mark.parametrize("case", UNPROVED)
def test_a_registration_that_does_not_end_is_another_broker(world: RegistrationWorld, case: str) -> None:
    world.create("/brokers/ids/1", registration_at(9092, UNPROVED[case]), ephemeral=True)
    before = world.server.contents()
    with pytest.raises(ClusterError, match="broker 1 is running already at PLAINTEXT://host:9092: set another"):
        register(world)
    assert world.server.contents() == before
