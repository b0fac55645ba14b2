"""Members of groups of both protocols beside three brokers."""

from __future__ import annotations

import pytest

from kafkacompat.history.events import Fetched, HistoryPartition
from kafkacompat.wire.java_hash import partition_for_key
from tests.simulation.clients.admin import Admin
from tests.simulation.clients.member import Member
from tests.simulation.clients.producer import Producer
from tests.simulation.clients.settings import AdminSettings, MemberSettings, ProducerSettings
from tests.simulation.clients.support import Clients

PLACES = [HistoryPartition("t", index) for index in range(4)]
PROTOCOLS = ("classic", "consumer")
PROPERTIES = {
    "group_initial_rebalance_delay_ms": "0",
    "group_min_session_timeout_ms": "1000",
    "group_consumer_min_session_timeout_ms": "1000",
    "group_consumer_session_timeout_ms": "2000",
    "group_consumer_min_heartbeat_interval_ms": "100",
    "group_consumer_heartbeat_interval_ms": "300",
}


def start_members(clients: Clients, protocol: str, stay_s: tuple[float, float]) -> list[Member]:
    settings = MemberSettings(
        protocol=protocol,
        session_timeout_s=2,
        rebalance_timeout_s=2,
        heartbeat_interval_s=0.3,
        commit_interval_s=(0.1, 0.3),
        stay_s=stay_s,
        away_s=(0, 0.5),
    )
    return [clients.start(Member, f"member-{number}.0", settings, ["t"]) for number in range(2)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_members_come_and_go_and_skip_nothing(protocol: str) -> None:
    clients = Clients(**PROPERTIES)
    producer = clients.start(Producer, "producer.0", ProducerSettings(), clients.places)
    members = start_members(clients, protocol, (0.5, 2))
    clients.cluster.advance(5)
    clients.run(producer.stop(), *(member.stop() for member in members))
    clients.judge(groups=["members"])
    assert all(member.commits and member.stays > 1 for member in members)
    assert not any(member.fetcher.resets or member.fetcher.truncations for member in members)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_members_follow_a_coordinator_that_moves(protocol: str) -> None:
    clients = Clients(**PROPERTIES)
    producer = clients.start(Producer, "producer.0", ProducerSettings(), clients.places)
    members = start_members(clients, protocol, (60, 60))
    clients.cluster.wait(lambda: all(member.commits for member in members))
    before = [member.commits for member in members]
    clients.cluster.kill(clients.cluster.leader("__consumer_offsets", members[0].process.rng.randrange(2)))
    clients.cluster.advance(4)
    clients.run(producer.stop(), *(member.stop() for member in members))
    clients.judge(groups=["members"])
    assert all(member.commits > count for member, count in zip(members, before, strict=True))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_members_read_the_partitions_that_a_topic_grows_by(protocol: str) -> None:
    clients = Clients(**PROPERTIES)
    members = start_members(clients, protocol, (60, 60))
    admin = clients.start(Admin, "admin", AdminSettings())
    clients.cluster.advance(1)
    clients.run(admin.grow_topic("t", 4))
    clients.cluster.wait(lambda: sorted(place for member in members for place in member.fetcher.assigned) == PLACES)
    assert all(len(member.fetcher.assigned) == 2 for member in members)


def test_a_member_asks_again_after_the_answer_of_a_replaced_coordinator() -> None:
    clients = Clients(**PROPERTIES)
    member = start_members(clients, "classic", (60, 60))[0]
    answers: list[int] = []

    def is_coordinator(group: str, node: int) -> bool:
        answers.append(node)
        return len(answers) > 2

    member.process.is_coordinator = is_coordinator
    clients.cluster.wait(lambda: len(answers) == 2)
    assert not has_fetched(clients, member)
    clients.cluster.wait(lambda: has_fetched(clients, member))
    assert set(answers) == {clients.cluster.leader("__consumer_offsets", partition_for_key("members", 2))}


def has_fetched(clients: Clients, member: Member) -> bool:
    return any(isinstance(event, Fetched) and event.client == member.process.name for event in clients.history)
