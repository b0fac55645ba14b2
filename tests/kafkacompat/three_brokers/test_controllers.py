"""Controllers and sessions that end, answers of ZooKeeper that are lost."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kafkacompat.broker import Broker
from kafkacompat.client.errors import RequestTimedOutError
from kafkacompat.cluster.active_controller import ActiveController
from kafkacompat.cluster.broadcasts import Broadcasts
from kafkacompat.cluster.errors import ClusterError
from kafkacompat.metadata.topic_changes import NewTopic
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.zookeeper.client import ConnectionLossError, SessionState
from kafkacompat.zookeeper.memory import SESSION_TIMEOUT_SECONDS
from tests.fakes.memory_files import MemoryFiles
from tests.kafkacompat.three_brokers.support import CHROOT, NODES, PORT, Cluster
from tests.kafkacompat.three_brokers.test_leaders import assert_replicas_agree, in_sync_of_leader, produce_some


def wait_for_controller(cluster: Cluster, *, but: int = -1) -> int:
    cluster.wait(lambda: cluster.controller() not in (-1, but))
    return cluster.controller()


def is_settled(cluster: Cluster) -> bool:
    """Whether all brokers know of all brokers."""
    return all(broker.metadata.image.brokers.keys() == cluster.brokers.keys() for broker in cluster.brokers.values())


def test_another_controller_is_elected() -> None:
    cluster = Cluster()
    first = cluster.controller()
    cluster.create("t", assignment={0: [node for node in NODES if node != first]})
    leader = cluster.wait_for_leader("t")
    produce_some(cluster, "t", [b"0"])
    cluster.kill(first)
    second = wait_for_controller(cluster, but=first)
    cluster.wait(lambda: is_settled(cluster))
    assert cluster.leader("t") == leader
    produce_some(cluster, "t", [b"1"])
    cluster.start(first)
    cluster.wait(lambda: is_settled(cluster))
    assert cluster.controller() == second
    assert {broker.metadata.image.controller_id for broker in cluster.brokers.values()} == {second}


@pytest.mark.parametrize("expire", [True, False])
def test_the_controller_dies_that_leads_as_well(expire: bool) -> None:
    cluster = Cluster()
    first = cluster.controller()
    others = [node for node in NODES if node != first]
    cluster.create("t", assignment={0: [first, *others]})
    assert cluster.wait_for_leader("t") == first
    produce_some(cluster, "t", [b"0", b"1"])
    cluster.kill(first, expire=expire)
    second = cluster.wait_for_leader("t", but=[first])
    assert cluster.controller() in others
    assert cluster.produce(second, "t", b"2").error_code == 0
    cluster.start(first)
    assert_replicas_agree(cluster, "t")
    assert cluster.read(second, "t") == [b"0", b"1", b"2"]


@pytest.mark.parametrize("is_controller", [True, False])
@pytest.mark.parametrize("lose_unsynced", [True, False])
def test_a_leader_is_back_before_its_session_ends(is_controller: bool, lose_unsynced: bool) -> None:
    cluster = Cluster()
    controller = cluster.controller()
    others = [node for node in NODES if node != controller]
    first, *rest = [controller, *others] if is_controller else [*others, controller]
    cluster.create("t", assignment={0: [first, *rest]})
    assert cluster.wait_for_leader("t") == first
    produce_some(cluster, "t", [b"0", b"1"])
    epoch = cluster.image("t").leader_epoch
    cluster.kill(first, expire=False, lose_unsynced=lose_unsynced)
    began = cluster.clock.seconds()
    cluster.start(first)
    wait_for_controller(cluster)
    cluster.wait_for_leader("t")
    # After a power failure nothing but the end of its session proves that the last process is dead.
    assert cluster.clock.seconds() - began < (SESSION_TIMEOUT_SECONDS + 2 if lose_unsynced else 5)
    cluster.wait(lambda: cluster.image("t").leader_epoch > epoch)
    cluster.wait_for_in_sync("t", NODES)
    produce_some(cluster, "t", [b"2"])
    assert cluster.read(cluster.leader("t"), "t") == [b"0", b"1", b"2"]
    cluster.advance(20)
    assert is_settled(cluster)
    assert_replicas_agree(cluster, "t")


def test_a_session_ends_while_its_broker_relies_on_it() -> None:
    cluster = Cluster()
    controller = cluster.controller()
    leader, other = [node for node in NODES if node != controller]
    cluster.create("t", assignment={0: [leader, other, controller]})
    cluster.wait_for_leader("t")
    produce_some(cluster, "t", [b"0"])
    cluster.zookeeper.disconnect(cluster.client_of(leader), noticed_after_seconds=100)
    cluster.advance(19)
    assert cluster.client_of(leader).state is SessionState.CONNECTED
    second = cluster.leader("t", node=other)
    assert second != leader
    assert cluster.partition(leader, "t").is_leader
    assert cluster.produce(leader, "t", b"never acknowledged").error_code != 0
    produce_some_at(cluster, second, b"1")
    cluster.zookeeper.reconnect(cluster.client_of(leader))
    cluster.wait_for_in_sync("t", NODES)
    assert_replicas_agree(cluster, "t")
    assert cluster.read(cluster.leader("t"), "t") == [b"0", b"1"]


def produce_some_at(cluster: Cluster, node: int, value: bytes) -> None:
    answer = cluster.produce(node, "t", value)
    assert answer.error_code == 0, answer


@pytest.mark.parametrize("which", NODES)
def test_a_session_expires(which: int) -> None:
    cluster = Cluster()
    cluster.create("t", partitions=3)
    for index in range(3):
        cluster.wait_for_leader("t", index)
        produce_some(cluster, "t", [b"0"], index)
    epoch = cluster.side(which).member.registration.epoch
    cluster.zookeeper.expire(cluster.client_of(which).session_id)
    cluster.wait(lambda: cluster.side(which).member.registration.epoch > epoch)
    wait_for_controller(cluster)
    cluster.wait(lambda: is_settled(cluster))
    for index in range(3):
        cluster.wait_for_leader("t", index)
        cluster.wait_for_in_sync("t", NODES, index)
        produce_some(cluster, "t", [b"1"], index)
        assert_replicas_agree(cluster, "t", index)


def test_brokers_go_on_without_zookeeper() -> None:
    cluster = Cluster()
    cluster.create("t", assignment={0: [1, 2, 3]})
    cluster.wait_for_leader("t")
    before = cluster.zookeeper.contents()
    clients = [cluster.client_of(node) for node in NODES]
    for client in clients:
        cluster.zookeeper.disconnect(client)
    cluster.advance(1)
    produce_some(cluster, "t", [b"0"])
    cluster.network.cut("broker-1", "broker-3")
    assert cluster.produce(1, "t", b"1", acks=1).error_code == 0
    cluster.advance(10)
    assert in_sync_of_leader(cluster, 1, "t") == {1, 2, 3}
    assert cluster.partition(1, "t").high_watermark.offset == 1
    assert cluster.zookeeper.contents() == before
    creating = cluster.send(cluster.controller(), cluster.build_create("u"), timeout_s=5)
    with pytest.raises(RequestTimedOutError):
        cluster.run(creating)
    assert cluster.zookeeper.contents() == before
    for client in clients:
        cluster.zookeeper.reconnect(client)
    cluster.wait(lambda: in_sync_of_leader(cluster, 1, "t") == {1, 2})
    assert cluster.read(1, "t") == [b"0", b"1"]
    cluster.network.heal("broker-1", "broker-3")
    cluster.wait_for_in_sync("t", NODES)
    cluster.create("v")
    cluster.wait_for_leader("v")
    assert_replicas_agree(cluster, "t")


def test_all_sessions_expire() -> None:
    cluster = Cluster()
    cluster.create("t")
    cluster.wait_for_leader("t")
    produce_some(cluster, "t", [b"0"])
    clients = [cluster.client_of(node) for node in NODES]
    for client in clients:
        cluster.zookeeper.disconnect(client)
    cluster.advance(30)
    assert cluster.produce(cluster.leader("t"), "t", b"1").error_code == 0
    for client in clients:
        cluster.zookeeper.reconnect(client)
    wait_for_controller(cluster)
    cluster.wait_for_leader("t")
    cluster.wait_for_in_sync("t", NODES)
    produce_some(cluster, "t", [b"2"])
    assert cluster.read(cluster.leader("t"), "t") == [b"0", b"1", b"2"]
    assert_replicas_agree(cluster, "t")


@pytest.mark.parametrize("number", range(2, 30))
def test_an_answer_is_lost_while_a_broker_starts(number: int) -> None:
    cluster = Cluster((1, 2))
    cluster.create("t", replicas=2)
    starting = cluster.begin(3)
    cluster.lose_answer(3, number)
    cluster.run(starting)
    cluster.wait(lambda: is_settled(cluster))
    assert f"{CHROOT}/brokers/ids/3" in cluster.zookeeper.contents()


@pytest.mark.parametrize("number", range(1, 6))
def test_an_answer_is_lost_during_an_election(number: int) -> None:
    cluster = Cluster()
    first = cluster.controller()
    cluster.create("t", partitions=3)
    for index in range(3):
        cluster.wait_for_leader("t", index)
        produce_some(cluster, "t", [b"0"], index)
    cluster.kill(first)
    for node in cluster.brokers:
        cluster.lose_answer(node, number)
    wait_for_controller(cluster, but=first)
    cluster.start(first)
    cluster.wait(lambda: is_settled(cluster))
    for index in range(3):
        cluster.wait_for_leader("t", index)
        cluster.wait_for_in_sync("t", NODES, index)
        produce_some(cluster, "t", [b"1"], index)
        assert_replicas_agree(cluster, "t", index)


@pytest.mark.parametrize("delay_s", [0.5, 3.0])
def test_watches_are_late(delay_s: float) -> None:
    cluster = Cluster()
    cluster.create("t")
    first = cluster.wait_for_leader("t")
    produce_some(cluster, "t", [b"0"])
    cluster.zookeeper.delay_watches(delay_s)
    cluster.kill(first)
    second = cluster.wait_for_leader("t", but=[first])
    assert cluster.produce(second, "t", b"1").error_code == 0
    cluster.start(first)
    cluster.wait_for_in_sync("t", NODES)
    assert cluster.read(cluster.leader("t"), "t") == [b"0", b"1"]
    assert_replicas_agree(cluster, "t")


def test_the_second_broker_with_an_id_ends_with_a_sentence() -> None:
    cluster = Cluster()
    cluster.create("t", assignment={0: [2]})
    second = cluster.build_double(2, "elsewhere")
    with pytest.raises(ClusterError, match="broker 2 is running already at PLAINTEXT://broker-2:9092"):
        cluster.run(second.start())
    assert not cluster.network.at("elsewhere").ports
    cluster.advance(2)
    assert is_settled(cluster)
    produce_some(cluster, "t", [b"0"])


def elsewhere(cluster: Cluster, node: int, files: MemoryFiles | None = None) -> Broker:
    """Return a second broker with the id of one and its advertised address, on another machine."""
    return cluster.build_double(node, "elsewhere", files, advertised_listeners=f"PLAINTEXT://broker-{node}:{PORT}")


def test_a_second_broker_with_the_id_and_address_of_another_leaves_its_registration() -> None:
    cluster = Cluster()
    registered = cluster.zookeeper.contents()[f"{CHROOT}/brokers/ids/2"]
    epoch = cluster.side(2).member.registration.epoch
    with pytest.raises(ClusterError, match="broker 2 is running already at PLAINTEXT://broker-2:9092 with other log"):
        cluster.run(elsewhere(cluster, 2).start())
    assert not cluster.network.at("elsewhere").ports
    cluster.advance(2)
    assert cluster.zookeeper.contents()[f"{CHROOT}/brokers/ids/2"] == registered
    assert cluster.side(2).member.registration.epoch == epoch
    assert is_settled(cluster)


def test_a_copy_of_a_living_broker_is_refused_when_the_session_does_not_end() -> None:
    cluster = Cluster()
    epoch = cluster.side(2).member.registration.epoch
    copy = elsewhere(cluster, 2, cluster.files[2].killed())
    with pytest.raises(ClusterError, match="broker 2 is running already at PLAINTEXT://broker-2:9092"):
        cluster.run(copy.start(), seconds=120)
    assert not cluster.network.at("elsewhere").ports
    assert cluster.side(2).member.registration.epoch == epoch
    assert is_settled(cluster)


def test_a_broker_is_back_on_another_machine_when_its_session_has_ended() -> None:
    """Its disk was moved there, and its name now leads there."""
    cluster = Cluster()
    cluster.create("t", replicas=3)
    cluster.wait_for_leader("t")
    cluster.kill(2, expire=False)
    cluster.boots[2] += 1
    took_s = cluster.clock.seconds()
    cluster.start(2)
    took_s = cluster.clock.seconds() - took_s
    assert SESSION_TIMEOUT_SECONDS - 1 < took_s < SESSION_TIMEOUT_SECONDS + 3
    cluster.wait_for_in_sync("t", NODES)


def test_a_broker_with_a_new_disk_is_refused_until_its_session_has_ended() -> None:
    cluster = Cluster()
    cluster.kill(2, expire=False)
    cluster.files[2] = MemoryFiles()
    with pytest.raises(ClusterError, match="start this one again in 18 s if that one is dead"):
        cluster.start(2)
    cluster.advance(SESSION_TIMEOUT_SECONDS)
    cluster.start(2)
    assert is_settled(cluster)


def test_a_killed_broker_is_back_at_another_address() -> None:
    cluster = Cluster()
    cluster.kill(2, expire=False)
    cluster.start(2, listeners=f"PLAINTEXT://broker-2:{PORT + 1}")
    assert cluster.brokers[2].metadata.image.brokers[2].endpoints == {"PLAINTEXT": ("broker-2", PORT + 1)}


def test_a_controller_that_cannot_begin_lets_another_be_elected(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    first = cluster.controller()
    begun: list[object] = []
    original = ActiveController._start

    async def fail_once(self: ActiveController) -> None:
        begun.append(self)
        if len(begun) == 1:
            raise ValueError("a defect")
        await original(self)

    monkeypatch.setattr(ActiveController, "_start", fail_once)
    cluster.kill(first)
    cluster.wait(lambda: len(begun) > 1)
    cluster.wait(lambda: is_settled(cluster))
    assert cluster.controller() in cluster.brokers
    cluster.create("t", replicas=2)
    cluster.wait_for_leader("t")


def test_a_controller_that_cannot_begin_handles_no_event(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    cluster.create("t", replicas=2)
    begun: list[ActiveController] = []
    announced: set[int] = set()
    start, announce = ActiveController._start, Broadcasts.announce

    async def fail_once(self: ActiveController) -> None:
        begun.append(self)
        if len(begun) == 1:
            self.look_again()
            raise ConnectionLossError
        await start(self)

    def note_announcement(self: Broadcasts, *arguments: Any) -> Any:
        announced.add(self._sender.controller_epoch)
        return announce(self, *arguments)

    monkeypatch.setattr(ActiveController, "_start", fail_once)
    monkeypatch.setattr(Broadcasts, "announce", note_announcement)
    cluster.kill(cluster.controller())
    cluster.wait(lambda: len(begun) > 1)
    cluster.wait(lambda: is_settled(cluster))
    failed, successor = (active._broadcasts._sender.controller_epoch for active in begun[:2])
    assert failed not in announced
    assert successor in announced


def test_a_broker_starts_again_before_a_controller_that_cannot_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    controller = cluster.controller()
    leader, other = [node for node in NODES if node != controller]
    cluster.create("t", assignment={0: [leader, other]})
    cluster.wait_for_leader("t")
    produce_some(cluster, "t", [b"0"])
    epoch = cluster.image("t").leader_epoch
    begun: list[object] = []
    original = ActiveController._start

    async def fail_once(self: ActiveController) -> None:
        begun.append(self)
        if len(begun) == 1:
            raise ConnectionLossError
        await original(self)

    monkeypatch.setattr(ActiveController, "_start", fail_once)
    cluster.kill(controller, expire=False)
    cluster.kill(leader, expire=False, lose_unsynced=True)
    cluster.start(leader)
    cluster.wait(lambda: len(begun) > 1)
    cluster.wait(lambda: cluster.image("t", node=other).leader_epoch > epoch)
    cluster.wait_for_leader("t")
    assert cluster.read(cluster.leader("t"), "t") == [b"0"]


def test_brokers_know_all_partitions_of_a_new_topic_before_all_of_its_leaders() -> None:
    cluster = Cluster()
    controller = cluster.controller()
    hanging, other = [node for node in NODES if node != controller]
    cluster.network.cut(f"broker-{controller}", f"broker-{hanging}")
    response = cluster.try_create("t", assignment={0: [other, hanging], 1: [hanging, other]})
    assert response.error_code == 0
    for node in (controller, other):
        assert cluster.leader("t", 0, node) == other
        assert cluster.image("t", 1, node) is not None
        assert cluster.leader("t", 1, node) == -1
    cluster.network.heal(f"broker-{controller}", f"broker-{hanging}")
    cluster.wait_for_leader("t", 1, seconds=90)


def test_the_controller_is_cut_off_from_a_broker() -> None:
    cluster = Cluster()
    controller = cluster.controller()
    first, second = [node for node in NODES if node != controller]
    cluster.create("t", assignment={0: [first, second, controller]})
    cluster.wait_for_leader("t")
    cluster.network.cut(f"broker-{controller}", f"broker-{first}")
    response = cluster.try_create("u", assignment={0: [first, second], 1: [second, first]})
    assert response.error_code == 0
    cluster.ids["u"] = response.topic_id
    cluster.wait(lambda: cluster.leader("u", 1, controller) == second)
    assert cluster.image("u", 0, first) is None
    cluster.network.heal(f"broker-{controller}", f"broker-{first}")
    cluster.wait_for_leader("u", 0, seconds=90)
    cluster.wait_for_in_sync("u", [first, second], 0)
    cluster.wait_for_in_sync("u", [first, second], 1)
    cluster.wait_for_in_sync("t", NODES)
    produce_some(cluster, "u", [b"0"])


def test_a_start_is_noticed_although_the_next_controller_dies_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that starts while there is no controller may have lost the end of its log: it must not lead in its old epoch."""
    cluster = Cluster()
    controller = cluster.controller()
    leader, heir = (node for node in NODES if node != controller)
    cluster.create("t", assignment={0: [leader]})
    assert cluster.wait_for_leader("t") == leader
    epoch = cluster.image("t", node=heir).leader_epoch
    session = cluster.client_of(controller).session_id
    cluster.kill(controller, expire=False)
    cluster.kill(leader, expire=False)
    cluster.begin(leader)
    cluster.wait(lambda: cluster.side(leader).member.registration.epoch >= 0)
    election = cluster.side(leader).member.election
    monkeypatch.setattr(election, "_stopped", True)
    with monkeypatch.context() as hanging:
        hanging.setattr(ActiveController, "start", lambda self: Deferred())
        cluster.zookeeper.expire(session)
        cluster.wait(lambda: cluster.controller() == heir)
        cluster.kill(heir)
    cluster.begin(controller)
    cluster.wait(lambda: cluster.controller() == controller)
    cluster.wait_for_leader("t")
    assert cluster.image("t").leader_epoch > epoch


def test_a_controller_that_gives_up_refuses_topics_until_another_one_is_known() -> None:
    cluster = Cluster()
    member = cluster.side(cluster.controller()).member
    member.election.pass_on()
    assert member.link.is_local
    refused: list[Failure] = []
    member.administration.create_topics([NewTopic("t", 1)]).addErrback(refused.append)
    problem = refused[0].value
    assert isinstance(problem, KafkaError) and problem.code is ErrorCode.NOT_CONTROLLER
    cluster.wait(lambda: cluster.controller() != -1)
    cluster.create("t", assignment={0: list(NODES)})
    cluster.wait_for_leader("t")
