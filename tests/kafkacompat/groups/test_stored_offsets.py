"""Offsets of version 0 of OffsetCommit, which the metadata store holds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkacompat.groups import stored_offsets
from kafkacompat.groups.commits import OffsetToCommit
from kafkacompat.groups.stored_offsets import StoredOffsets
from kafkacompat.metadata.store import ABSENT, StoreChange, StoreEntry
from kafkacompat.wire.errors import ErrorCode
from tests.fakes.memory_store import MemoryStore
from tests.kafkacompat.metadata.deferreds import outcome

FULL = ErrorCode.UNKNOWN_SERVER_ERROR


class World:
    """Return `StoredOffsets` with a store in memory."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.offsets = StoredOffsets(self.store, 10)

    def commit(self, group: str = "g", topic: str = "t", **partitions: int) -> set[ErrorCode]:
        """Commit p0=5, p1=6 ...; returns the codes."""
        wanted = [OffsetToCommit(topic, bytes(16), int(name[1:]), at, -1, None) for name, at in partitions.items()]
        codes = outcome(self.offsets.commit(group, wanted))
        return set(codes)

    def fetch(self, group: str = "g", topic: str = "t", count: int = 3) -> list[int]:
        offsets = outcome(self.offsets.fetch(group, [(topic, index) for index in range(count)]))
        assert not isinstance(offsets, ErrorCode)
        return [offsets.get((topic, index), -1) for index in range(count)]


@pytest.fixture
def world() -> Iterator[World]:
    yield World()


def test_offsets_are_found_by_group_topic_and_partition(world: World) -> None:
    assert world.commit(p0=5, p2=7) == world.commit("h", p0=50) == world.commit(topic="u", p0=500) == {ErrorCode.NONE}
    assert (world.fetch(), world.fetch("h"), world.fetch(topic="u", count=1)) == ([5, -1, 7], [50, -1, -1], [500])


def test_a_request_is_one_write_of_the_changed_offsets(world: World) -> None:
    world.commit(p0=5, p1=6, p2=7)
    assert [len(changes) for changes in world.store.writes] == [3]
    world.commit(p0=5, p1=8, p2=7)
    assert [len(changes) for changes in world.store.writes] == [3, 1]
    assert world.commit(p0=5) == {ErrorCode.NONE}
    assert len(world.store.writes) == 2


def test_stored_offsets_have_kafkas_paths_and_values(world: World) -> None:
    world.commit("a group/of mine", "topic.of_mine", p3=12)
    world.commit("a group: mine", "t", p0=1)
    assert world.store.entries == {
        "/consumers/a%20group%2Fof%20mine/offsets/topic.of_mine/3": StoreEntry(b"12", 0),
        "/consumers/a group: mine/offsets/t/0": StoreEntry(b"1", 0),
    }


def test_other_znodes_of_old_consumers_are_kept(world: World) -> None:
    others = ("/consumers/g", "/consumers/g/ids/c", "/consumers/g/offsets/t", "/consumers/g/owners/t/0")
    world.store.entries = {key: StoreEntry(b"", 0) for key in others}
    world.commit(p0=5)
    outcome(world.offsets.delete_offsets_of_topic("t"))
    assert [*world.store.entries] == [*others]


def test_a_damaged_offset_is_an_error(world: World) -> None:
    world.store.entries = {"/consumers/g/offsets/t/0": StoreEntry(b"x", 0)}
    assert outcome(world.offsets.fetch("g", [("t", 0)])) == FULL


def test_a_concurrent_write_is_overwritten(world: World) -> None:
    world.commit(p0=5)

    def interfere() -> None:
        world.store.before_write = lambda: None
        outcome(world.store.compare_and_set([StoreChange("/consumers/g/offsets/t/0", 0, b"99")]))
        outcome(world.store.compare_and_set([StoreChange("/consumers/g/offsets/t/1", ABSENT, b"99")]))

    world.store.before_write = interfere
    assert world.commit(p0=7, p1=8) == {ErrorCode.NONE}
    assert world.fetch(count=2) == [7, 8]


def test_a_conflicting_write_is_not_retried_for_ever(world: World) -> None:
    world.commit(p0=0)
    versions = iter(range(100))

    def interfere() -> None:
        entries = world.store.entries
        world.store.entries = {**entries, "/consumers/g/offsets/t/0": StoreEntry(b"x", 1000 + next(versions))}

    world.store.before_write = interfere
    assert world.commit(p0=1) == {FULL}


def test_the_number_of_stored_offsets_is_limited(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_offsets, "MAX_OFFSETS", 3)
    assert world.commit(p0=1, p1=1) == {ErrorCode.NONE}
    assert world.commit("h", p0=1, p1=1) == {FULL}
    assert world.fetch("h") == [-1, -1, -1]
    assert world.commit("h", p0=1) == {ErrorCode.NONE}
    assert world.commit("h", p1=1) == {FULL}
    assert world.commit(p0=2, p1=2) == {ErrorCode.NONE}
    world.offsets = StoredOffsets(world.store, 10)
    assert world.commit("i", p0=1) == {FULL}
    outcome(world.offsets.delete_offsets_of_topic("t"))
    assert world.commit("i", p0=1, p1=2, p2=3) == {ErrorCode.NONE}
    assert world.commit("i", topic="u", p0=1) == {FULL}


def test_a_lost_answer_is_not_counted_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_offsets, "MAX_OFFSETS", 1)
    world.store.lose_answers = True
    assert world.commit(p0=1) == {ErrorCode.UNKNOWN_SERVER_ERROR}
    world.store.lose_answers = False
    assert world.commit(p1=1) == {FULL}
    assert world.commit(p0=2) == {ErrorCode.NONE}


@pytest.mark.parametrize("deleted", ["t", "offsets"])
def test_deleting_a_topic_takes_its_offsets_and_no_others(world: World, deleted: str) -> None:
    topics = ("t", "tt", "offsets")
    for topic in topics:
        world.commit("offsets", topic, p0=1)
    outcome(world.offsets.delete_offsets_of_topic(deleted))
    left = [topic for topic in topics if world.fetch("offsets", topic, 1) == [1]]
    assert left == [topic for topic in topics if topic != deleted]


def test_a_failed_deletion_of_offsets_is_reported(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.commit(p0=0)
    versions = iter(range(100))

    def interfere() -> None:
        world.store.entries = {"/consumers/g/offsets/t/0": StoreEntry(b"5", 1000 + next(versions))}

    world.store.before_write = interfere
    assert outcome(world.offsets.delete_offsets_of_topic("t")) is None
    (message,) = caplog.messages
    assert message == "Failed to delete the offsets of topic t: other requests keep changing the same offsets"


def test_a_failing_store_is_reported_and_changes_nothing(world: World) -> None:
    world.store.failing = True
    assert world.commit(p0=1) == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert outcome(world.offsets.fetch("g", [("t", 0)])) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert outcome(world.offsets.delete_offsets_of_topic("t")) is None
    world.store.failing = False
    assert world.commit(p0=1) == {ErrorCode.NONE}
