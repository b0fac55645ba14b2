"""How many entries of a large request or answer are handled in one turn of the reactor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from kafkacompat.handlers import add_partitions_to_txn, metadata
from kafkacompat.handlers.context import Pending, Services
from kafkacompat.handlers.guards.access import Access
from kafkacompat.handlers.guards.groups import guard_consumer_groups
from kafkacompat.handlers.metadata import PARTITIONS_IN_A_STEP
from kafkacompat.metadata.image import ImageHolder, MetadataImage
from kafkacompat.security.acls.authorizer import Authorizer
from kafkacompat.wire.apis.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kafkacompat.wire.apis.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from kafkacompat.wire.apis.metadata import MetadataRequest
from kafkacompat.wire.errors import ErrorCode
from tests.fakes.busy_clock import LOOKS_A_TURN, BusyClock
from tests.handlers.admin_node import AdminNode
from tests.handlers.coordinator_node import make_topic
from tests.handlers.node import context_of, handle_request, make_services
from tests.kafkacompat.metadata.deferreds import outcome
from tests.kafkacompat.security.acls.rules import build_table

MANY = 2_000


class Entries:
    """Counts the entries that a function handles in each turn."""

    def __init__(self) -> None:
        self.clock = BusyClock()
        self.handled = 0

    def counting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def count(*args: Any) -> Any:
            self.handled += 1
            return function(*args)

        return count

    def answer(self, pending: object) -> tuple[Any, list[int]]:
        """The response, and the number of entries of each turn that handled some."""
        assert isinstance(pending, Pending) and pending.in_order
        turns, before = [self.handled], self.handled
        while self.clock.turn():
            turns.append(self.handled - before)
            before = self.handled
        return outcome(pending.response), [count for count in turns if count]


class CountedList(list[Any]):
    """A list without elements that counts how often it is read."""

    def __init__(self, entries: Entries) -> None:
        super().__init__()
        self._entries = entries

    def __iter__(self) -> Iterator[Any]:
        self._entries.handled += 1
        return super().__iter__()


@pytest.fixture
def entries() -> Entries:
    return Entries()


def test_metadata_of_one_large_topic(entries: Entries, monkeypatch: pytest.MonkeyPatch) -> None:
    describe = entries.counting(metadata._describe_partition)
    monkeypatch.setattr(metadata, "_describe_partition", describe)
    node = AdminNode()
    node.make_topic("large", MANY)
    node.services.clock = entries.clock
    response, turns = entries.answer(node.send(MetadataRequest(topics=None), 13))
    assert [partition.partition_index for partition in response.topics[0].partitions] == list(range(MANY))
    assert sum(turns) == MANY
    assert max(turns) <= (LOOKS_A_TURN + 1) * PARTITIONS_IN_A_STEP


def test_members_of_consumer_groups(entries: Entries) -> None:
    make_member = entries.counting(lambda number: Member(member_id=f"m{number}"))

    def describe(group_id: str) -> tuple[DescribedGroup, Iterator[Member]]:
        return DescribedGroup(group_id=group_id), map(make_member, range(100))

    coordinators: Any = SimpleNamespace(groups=SimpleNamespace(describe_consumer_group=describe))
    services = make_services(clock=entries.clock, coordinators=coordinators)
    request = ConsumerGroupDescribeRequest(group_ids=["a", "b", "a"], include_authorized_operations=True)
    response, turns = entries.answer(handle_request(request, context_of(1), services))
    assert [(group.group_id, len(group.members)) for group in response.groups] == [("a", 100), ("b", 100)]
    assert response.groups[0].authorized_operations > 0
    assert max(turns) <= LOOKS_A_TURN + 1


def test_members_whose_topics_are_asked_about(entries: Entries) -> None:
    """The response of the handler is there at once; the guard goes through its members."""
    topics = [TopicPartitions(topic_name="t", partitions=[0])]

    def make_member(number: int) -> Member:
        member = Member(member_id=f"m{number}", assignment=Assignment(topic_partitions=topics))
        member.target_assignment = Assignment(topic_partitions=CountedList(entries))
        return member

    groups = [DescribedGroup(group_id=name, members=[*map(make_member, range(100))]) for name in "ab"]
    table = build_table("+ANONYMOUS DESCRIBE GROUP a", "+ANONYMOUS DESCRIBE GROUP b", "+ANONYMOUS DESCRIBE TOPIC t")
    access = Access(Authorizer(lambda: table), 69, context_of(1), make_services(clock=entries.clock))
    request = ConsumerGroupDescribeRequest(group_ids=["a", "b"])
    pending = guard_consumer_groups(request, access, lambda _: ConsumerGroupDescribeResponse(groups=groups))
    response, turns = entries.answer(pending)
    assert [(group.error_code, len(group.members)) for group in response.groups] == [(0, 100), (0, 100)]
    assert sum(turns) == 200
    assert max(turns) <= LOOKS_A_TURN + 1


def make_transaction_services(clock: BusyClock) -> Services:
    image = MetadataImage().with_topics({"t": make_topic("t", MANY)})
    holder = ImageHolder()
    holder.publish(image)
    transactions = SimpleNamespace(add_partitions=lambda name, producer, partitions, version: ErrorCode.NONE)
    coordinators: Any = SimpleNamespace(transactions=transactions)
    return make_services(clock=clock, metadata=holder, coordinators=coordinators)


def test_partitions_of_a_transaction(entries: Entries, monkeypatch: pytest.MonkeyPatch) -> None:
    check = entries.counting(add_partitions_to_txn._check_partition)
    monkeypatch.setattr(add_partitions_to_txn, "_check_partition", check)
    topics = [AddPartitionsToTxnTopic(name="t", partitions=list(range(MANY)))]
    request = AddPartitionsToTxnRequest(v3_and_below_transactional_id="x", v3_and_below_topics=topics)
    services = make_transaction_services(entries.clock)
    response, turns = entries.answer(handle_request(request, context_of(3), services))
    (topic,) = response.results_by_topic_v3_and_below
    assert {result.partition_error_code for result in topic.results_by_partition} == {0}
    assert sum(turns) == len(topic.results_by_partition) == MANY
    assert max(turns) <= LOOKS_A_TURN + 1
