"""The assignors, on examples and on random groups."""

from __future__ import annotations

from collections.abc import Mapping
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkacompat.groups.consumer.assignors import ASSIGNORS, Subscriber, assign_range, assign_uniform
from kafkacompat.groups.consumer.member import Assignment

A, B, C = (bytes([number]) * 16 for number in (1, 2, 3))
TOPICS = (A, B, C)


def make_reader(*topic_ids: bytes, target: Assignment | None = None, instance: str | None = None) -> Subscriber:
    return Subscriber(instance, frozenset(topic_ids), target or {})


def list_sizes(assignments: Mapping[str, Assignment]) -> list[int]:
    return [sum(map(len, assignment.values())) for assignment in assignments.values()]


def give_assignments(
    subscribers: Mapping[str, Subscriber], assignments: Mapping[str, Assignment]
) -> dict[str, Subscriber]:
    """Return the same subscribers with their assignments as targets."""
    return {name: subscriber._replace(target=assignments.get(name, {})) for name, subscriber in subscribers.items()}


def count_moved(before: Mapping[str, Assignment], after: Mapping[str, Assignment]) -> int:
    """Count the partitions that moved from one member to another."""
    return sum(
        len(partitions - after.get(name, {}).get(topic_id, frozenset()))
        for name, target in before.items()
        for topic_id, partitions in target.items()
    )


def test_range_gives_each_reader_of_a_topic_neighbours_of_its_partitions() -> None:
    given = assign_range({"m2": make_reader(A, B), "m1": make_reader(A), "m3": make_reader(A, B)}, {A: 7, B: 2})
    assert given == {
        "m1": {A: frozenset({0, 1, 2})},
        "m2": {A: frozenset({3, 4}), B: frozenset({0})},
        "m3": {A: frozenset({5, 6}), B: frozenset({1})},
    }


def test_range_serves_static_members_first() -> None:
    given = assign_range(
        {"a": make_reader(A), "z": make_reader(A, instance="i2"), "y": make_reader(A, instance="i1")}, {A: 3}
    )
    assert given == {"y": {A: frozenset({0})}, "z": {A: frozenset({1})}, "a": {A: frozenset({2})}}


def test_uniform_shares_several_topics_out_alike() -> None:
    given = assign_uniform({name: make_reader(A, B) for name in ("m1", "m2", "m3")}, {A: 4, B: 4})
    assert sorted(list_sizes(given)) == [2, 3, 3]


def test_uniform_moves_no_more_than_it_takes_when_a_member_comes() -> None:
    two = {"m1": make_reader(A), "m2": make_reader(A)}
    before = assign_uniform(two, {A: 6})
    after = assign_uniform({**give_assignments(two, before), "m3": make_reader(A)}, {A: 6})
    assert list_sizes(after) == [2, 2, 2]
    assert count_moved(before, after) == 2


def test_uniform_gives_a_departed_members_partitions_to_the_others() -> None:
    three = {name: make_reader(A) for name in ("m1", "m2", "m3")}
    before = assign_uniform(three, {A: 6})
    left = {name: subscriber for name, subscriber in give_assignments(three, before).items() if name != "m2"}
    after = assign_uniform(left, {A: 6})
    assert list_sizes(after) == [3, 3]
    assert all(before[name][A] <= after[name][A] for name in left)


def test_uniform_removes_partitions_of_unsubscribed_topics() -> None:
    given = assign_uniform({"m1": make_reader(B, target={A: frozenset({0})}), "m2": make_reader(A)}, {A: 1, B: 1})
    assert given == {"m1": {B: frozenset({0})}, "m2": {A: frozenset({0})}}


def test_uniform_balances_members_with_different_subscriptions() -> None:
    had = {A: frozenset(range(6))}
    given = assign_uniform({"m1": make_reader(A, B, target=had), "m2": make_reader(A)}, {A: 6, B: 2})
    assert list_sizes(given) == [4, 4]


@pytest.mark.parametrize("name", ASSIGNORS)
def test_members_without_topics_and_topics_without_members_are_fine(name: str) -> None:
    assert ASSIGNORS[name]({"m1": make_reader(), "m2": make_reader(A)}, {A: 2}) == {
        "m1": {},
        "m2": {A: frozenset({0, 1})},
    }
    assert ASSIGNORS[name]({"m1": make_reader()}, {}) == {"m1": {}}


@pytest.mark.parametrize(("topics", "partitions"), [(10_000, 1), (1, 10_000)])
@pytest.mark.parametrize("name", ASSIGNORS)
def test_many_partitions_take_little_time(name: str, topics: int, partitions: int) -> None:
    """The assignor blocks the reactor, so it has to be fast: some 70 ms. A search of all topics for each partition takes 15 s."""
    topic_ids = [number.to_bytes(16, "big") for number in range(topics)]
    counts = dict.fromkeys(topic_ids, partitions)
    first = {"m1": make_reader(*topic_ids)}
    both = {**give_assignments(first, ASSIGNORS[name](first, counts)), "m2": make_reader(*topic_ids)}
    began = process_time()
    given = ASSIGNORS[name](both, counts)
    assert process_time() - began < 1
    assert sum(list_sizes(given)) == 10_000


COUNTS = st.fixed_dictionaries({topic_id: st.integers(1, 9) for topic_id in TOPICS})
SUBSCRIPTIONS = st.dictionaries(
    st.text("abcdefgh", min_size=1, max_size=2), st.frozensets(st.sampled_from(TOPICS)), min_size=1, max_size=8
)
TARGETS = st.dictionaries(st.sampled_from(TOPICS), st.frozensets(st.integers(0, 8), min_size=1))


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(ASSIGNORS)), COUNTS, SUBSCRIPTIONS, st.lists(TARGETS, min_size=8, max_size=8))
def test_each_partition_goes_to_exactly_one_of_its_readers(
    name: str, counts: dict[bytes, int], subscriptions: dict[str, frozenset[bytes]], targets: list[Assignment]
) -> None:
    """The members' targets may be anything, even nonsense."""
    subscribers = {
        member: Subscriber(None, topics, target)
        for (member, topics), target in zip(subscriptions.items(), targets, strict=False)
    }
    given = ASSIGNORS[name](subscribers, counts)
    assert given.keys() == subscribers.keys()
    owners = [
        (topic_id, partition) for target in given.values() for topic_id, some in target.items() for partition in some
    ]
    read = set().union(*subscriptions.values())
    assert sorted(owners) == sorted((topic_id, number) for topic_id in read for number in range(counts[topic_id]))
    assert all(target.keys() <= subscribers[member].topic_ids for member, target in given.items())
    assert all(all(target.values()) for target in given.values())


@settings(max_examples=200, deadline=None)
@given(COUNTS, st.integers(1, 8), st.integers(1, 8))
def test_uniform_is_balanced_and_sticky_if_all_read_the_same(counts: dict[bytes, int], first: int, second: int) -> None:
    earlier = {f"m{number}": make_reader(A, B) for number in range(first)}
    before = assign_uniform(earlier, counts)
    later = {f"m{number}": make_reader(A, B, target=before.get(f"m{number}")) for number in range(second)}
    after = assign_uniform(later, counts)
    assert max(list_sizes(after)) - min(list_sizes(after)) <= 1
    left = {name: before[name] for name in before.keys() & after.keys()}
    least = sum(max(0, size - max(list_sizes(after))) for size in list_sizes(left))
    assert count_moved(left, after) <= least + sum(size > min(list_sizes(after)) for size in list_sizes(left))
    assert assign_uniform(give_assignments(later, after), counts) == after


@settings(max_examples=200, deadline=None)
@given(COUNTS, SUBSCRIPTIONS)
def test_uniform_leaves_no_single_move_that_would_make_it_better(
    counts: dict[bytes, int], subscriptions: dict[str, frozenset[bytes]]
) -> None:
    subscribers = {member: make_reader(*topics) for member, topics in subscriptions.items()}
    given = assign_uniform(subscribers, counts)
    load = {member: sum(map(len, target.values())) for member, target in given.items()}
    for member, target in given.items():
        for topic_id in target:
            others = [load[other] for other, topics in subscriptions.items() if topic_id in topics]
            assert load[member] - min(others) <= 1
