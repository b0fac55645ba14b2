"""Real consumers in groups of the consumer protocol (KIP-848): librdkafka's and Java's, alone and together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import pytest

from compat_tests.brokers import BROKERS, Broker
from compat_tests.confluent import create_topic, produce
from compat_tests.conftest import MakeBroker
from compat_tests.group_members import MEMBERS, Member
from compat_tests.waiting import until

# Members send heartbeats ten times a second, so that a rebalance does not take half a minute.
QUICK = {
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "30000",
    "group.consumer.assignment.interval.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
}

NewMember = Callable[..., Member]


@pytest.fixture(scope="module")
def quick(broker_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker whose groups are quick."""
    with BROKERS[broker_kind](tmp_path_factory.mktemp("quick") / "node", QUICK) as running:
        yield running


@pytest.fixture(params=["librdkafka", pytest.param("java", marks=pytest.mark.tools)])
def new_member(request: pytest.FixtureRequest) -> Iterator[NewMember]:
    """Make members of one client, which are gone after the test."""
    made: list[Member] = []

    def make(broker: Broker, group: str, **options: str) -> Member:
        made.append(MEMBERS[request.param](broker, group, **options))
        return made[-1]

    yield make
    for member in made:
        getattr(member, "kill", member.close)()


def list_shares(members: Sequence[Member]) -> list[int]:
    for member in members:
        member.poll()
    return sorted(len(member.assignment()) for member in members)


def read_numbers(members: Sequence[Member], numbers: range) -> Counter[str]:
    """Read until all the numbers came, with others or without."""
    wanted = {str(number) for number in numbers}
    seen: Counter[str] = Counter()

    def has_come() -> bool:
        for member in members:
            seen.update(member.poll())
        return wanted <= seen.keys()

    until(has_come, every_seconds=0)
    return seen


def test_three_members_share_the_partitions_through_joins_and_leaves(
    quick: Broker, name: str, new_member: NewMember
) -> None:
    create_topic(quick, name, 6)
    members = [new_member(quick, name) for _ in range(3)]
    members[0].subscribe(name)
    until(lambda: list_shares(members[:1]) == [6], every_seconds=0)
    for member in members[1:]:
        member.subscribe(name)
    until(lambda: list_shares(members) == [2, 2, 2], every_seconds=0)
    assert len(set().union(*(member.assignment() for member in members))) == 6
    produce(quick, name, [str(number) for number in range(300)])
    assert set(read_numbers(members, range(300)).values()) == {1}
    for member in members:
        member.commit()
    members[0].close()
    until(lambda: list_shares(members[1:]) == [3, 3], every_seconds=0)
    produce(quick, name, [str(number) for number in range(300, 400)])
    assert read_numbers(members[1:], range(300, 400)).keys() == {str(number) for number in range(300, 400)}


def test_members_go_on_after_the_broker_was_killed(make_broker: MakeBroker, name: str, new_member: NewMember) -> None:
    broker = make_broker(QUICK)
    create_topic(broker, name, 4)
    produce(broker, name, [str(number) for number in range(40)])
    members = [new_member(broker, name) for _ in range(2)]
    for member in members:
        member.subscribe(name)
    until(lambda: list_shares(members) == [2, 2], every_seconds=0)
    held = [member.assignment() for member in members]
    broker.kill()
    broker.start()
    produce(broker, name, [str(number) for number in range(40, 80)])
    read_numbers(members, range(40, 80))
    assert [member.assignment() for member in members] == held
    for member in members:
        member.commit()


def test_a_static_member_is_back_where_it_was(quick: Broker, name: str, new_member: NewMember) -> None:
    create_topic(quick, name, 2)
    staying = new_member(quick, name, **{"group.instance.id": "staying"})
    moving = new_member(quick, name, **{"group.instance.id": "moving"})
    for member in (staying, moving):
        member.subscribe(name)
    until(lambda: list_shares([staying, moving]) == [1, 1], every_seconds=0)
    held = moving.assignment()
    moving.close()
    moving = new_member(quick, name, **{"group.instance.id": "moving"})
    moving.subscribe(name)
    until(lambda: list_shares([staying, moving]) == [1, 1], every_seconds=0)
    assert moving.assignment() == held


def test_a_pattern_finds_the_topics_there_are(quick: Broker, name: str, new_member: NewMember) -> None:
    for number in range(2):
        create_topic(quick, f"{name}-{number}")
    create_topic(quick, f"not-{name}")
    member = new_member(quick, name)
    member.match(f"{name}-[0-9]+")
    until(lambda: list_shares([member]) == [2], every_seconds=0)
    assert member.assignment() == {(f"{name}-0", 0), (f"{name}-1", 0)}


def test_both_clients_and_both_protocols_share_one_group(quick: Broker, name: str) -> None:
    create_topic(quick, name, 3)
    classic = MEMBERS["librdkafka"](
        quick, name, **{"group.protocol": "classic", "session.timeout.ms": "6000", "heartbeat.interval.ms": "100"}
    )
    classic.subscribe(name)
    until(lambda: list_shares([classic]) == [3], every_seconds=0)
    newer = [kind(quick, name) for kind in MEMBERS.values()]
    for member in newer:
        member.subscribe(name)
    until(lambda: list_shares([classic, *newer]) == [1, 1, 1], every_seconds=0)
    produce(quick, name, [str(number) for number in range(100)])
    assert set(read_numbers([classic, *newer], range(100)).values()) == {1}
    for member in newer:
        member.close()
    until(lambda: list_shares([classic]) == [3], every_seconds=0)
    classic.close()
