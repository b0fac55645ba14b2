"""The groups of a coordinator after a start."""

import struct
from collections.abc import Iterator

import pytest

from kafkacompat.coordination.record_format import decode_value
from kafkacompat.coordination.replay import RECORDS_A_TURN
from kafkacompat.groups.classic.records import GroupMetadataValue
from kafkacompat.groups.commits import FetchedOffsets
from kafkacompat.groups.committed_offset import CommittedOffset
from kafkacompat.groups.offset_records import offset_record, offset_tombstone
from kafkacompat.wire.compiler import encode_message
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.record_batch import build_batch
from tests.fakes.coordinator_log import FakeCoordinatorLog
from tests.kafkacompat.groups.support import DELAY_S, GROUP, SESSION_S, World, take_response, write_topics

NONE = ErrorCode.NONE
OPEN_TRANSACTION = {"producer_id": 9, "producer_epoch": 0, "base_sequence": 0, "transactional": True}


def make_commit(offset: int, partition: int = 0) -> tuple[bytes, bytes | None]:
    return offset_record(GROUP, "t", partition, CommittedOffset(offset, -1, "", 0))


def log_of(*batches: bytes) -> FakeCoordinatorLog:
    log = FakeCoordinatorLog(partition_count=1)
    for batch in batches:
        log.store(0, batch)
    return log


def make_batch(*records: tuple[bytes | None, bytes | None], **options: int | bool) -> bytes:
    return build_batch([(0, key, value, ()) for key, value in records], **options)  # type: ignore[arg-type]


def make_marker(kind: int, producer_id: int = 9) -> bytes:
    control = (struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 0))
    return make_batch(control, producer_id=producer_id, producer_epoch=0, transactional=True, control=True)


def load_world(*batches: bytes) -> World:
    world = World(log_of(*batches))
    world.turn(5)
    return world


def test_members_go_on_after_a_restart_as_if_nothing_had_happened() -> None:
    world = World()
    members = world.stable(3)
    world.commit(42, member_id=members[0], generation=1)
    again = world.restarted()
    assert again.coordinator.describe(GROUP) == world.coordinator.describe(GROUP)
    assert [again.heartbeat(member_id, 1) for member_id in members] == [NONE] * 3
    assert take_response(again.sync(members[2], 1)).assignment == members[2].encode()
    assert again.committed() == 42
    assert again.state() == "Stable"


def test_members_that_do_not_come_back_expire() -> None:
    world = World()
    world.stable(2)
    again = world.restarted()
    again.clock.advance(SESSION_S)
    assert again.state() == "Empty"


def test_a_generation_that_was_not_assigned_is_not_remembered() -> None:
    world = World()
    members = world.stable(2)
    answer = world.join(members[0])
    world.join(members[1])
    assert take_response(answer).generation_id == 2
    again = world.restarted()
    assert again.heartbeat(members[0], 2) is ErrorCode.ILLEGAL_GENERATION
    assert again.heartbeat(members[0], 1) is NONE


def test_the_topics_of_a_loaded_group_are_known() -> None:
    world = World()
    (member_id,) = world.stable(protocols=(("range", write_topics("a", "b")),))
    world.commit(member_id=member_id, generation=1, topic="a", retention_ms=0)
    world.commit(member_id=member_id, generation=1, topic="c", retention_ms=0)
    again = world.restarted()
    for _ in range(601):
        again.clock.advance(1)
        again.heartbeat(member_id, 1)
    again.turn(5)
    assert [again.committed(topic=topic) for topic in "ac"] == [7, -1]


def test_a_loaded_group_larger_than_allowed_is_rebalanced() -> None:
    world = World()
    members = world.stable(3)
    again = World(world.log, group_max_size=2)
    again.turn(5)
    assert again.heartbeat(members[0], 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_large_partition_is_loaded_piece_by_piece() -> None:
    records = [make_commit(offset) for offset in range(3 * RECORDS_A_TURN)]
    world = World(log_of(make_batch(*records)))
    coordinator = world.coordinator
    turns = 0
    while coordinator.list() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        load = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        fetched: FetchedOffsets = take_response(coordinator.fetch_offsets(GROUP))
        assert fetched.error_code is load
        assert take_response(world.join()).error_code == load
        assert take_response(world.commit()) == [load]
        assert coordinator.describe(GROUP).error_code == load
        assert world.heartbeat("m", 1) is NONE, "a member may have been there before the restart"
        world.turn()
        turns += 1
    assert turns == 3
    assert world.committed() == 3 * RECORDS_A_TURN - 1


class CountedLog(FakeCoordinatorLog):
    """Ten partitions, of two batches each that take one turn each."""

    def __init__(self) -> None:
        super().__init__(partition_count=10)
        self.batches_read = 0
        for partition in range(10):
            for _ in range(2):
                self.store(partition, make_batch(*[make_commit(1)] * RECORDS_A_TURN))

    def read(self, partition: int) -> Iterator[bytes]:
        for batch in super().read(partition):
            self.batches_read += 1
            yield batch


def test_only_one_partition_has_its_turn_at_a_time() -> None:
    log = CountedLog()
    world = World(log)
    before = log.batches_read
    world.turn()
    assert log.batches_read - before <= 1
    world.turn(30)
    assert world.coordinator.list() is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_a_partition_that_is_handed_over_while_it_is_loaded_is_forgotten() -> None:
    log = CountedLog()
    world = World(log)
    world.turn()
    before = log.batches_read
    for partition in range(10):
        world.coordinator.on_resignation(partition)
    world.turn(30)
    assert log.batches_read == before
    assert world.coordinator.list() == []
    assert take_response(world.commit()) == [ErrorCode.NOT_COORDINATOR]


def test_a_repeated_election_does_nothing() -> None:
    world = World()
    members = world.stable()
    assert world.coordinator.on_election(world.coordinator.partition_for(GROUP)).called
    assert world.heartbeat(members[0], 1) is NONE


def test_tombstones_delete() -> None:
    world = load_world(make_batch(make_commit(1, 0), make_commit(1, 1)), make_batch(offset_tombstone(GROUP, "t", 0)))
    assert [world.committed(partition=0), world.committed(partition=1)] == [-1, 1]
    assert load_world(make_batch(offset_tombstone("never seen", "t", 0))).coordinator.list() == []


# Transactions that Kafka wrote


@pytest.mark.parametrize(
    ("batches", "offset"),
    [
        ([make_batch(make_commit(1)), make_batch(make_commit(2), **OPEN_TRANSACTION)], 1),
        ([make_batch(make_commit(1)), make_batch(make_commit(2), **OPEN_TRANSACTION), make_marker(1)], 2),
        ([make_batch(make_commit(1)), make_batch(make_commit(2), **OPEN_TRANSACTION), make_marker(0)], 1),
        ([make_batch(make_commit(2), **OPEN_TRANSACTION), make_marker(1, producer_id=8)], -1),
        ([make_batch(make_commit(2), **OPEN_TRANSACTION), make_batch(make_commit(3)), make_marker(1)], 3),
        (
            [
                make_batch(make_commit(2), **OPEN_TRANSACTION),
                make_batch(offset_tombstone(GROUP, "t", 0)),
                make_marker(1),
            ],
            -1,
        ),
        ([make_marker(1), make_batch(make_commit(3))], 3),
    ],
)
def test_offsets_of_a_transaction_count_once_it_is_committed(batches: list[bytes], offset: int) -> None:
    assert load_world(*batches).committed() == offset


# Records that are left out


@pytest.mark.parametrize(
    "record",
    [
        (None, b"x"),
        (b"", b"x"),
        (b"\0", b"x"),
        (struct.pack(">h", 3) + b"\0\1g", b"\0\0\0\0\0\1"),  # a consumer group's metadata (KIP-848)
        (struct.pack(">h", 99), b"x"),
        (struct.pack(">h", 1) + b"\0\1g", b"x"),  # cut off
        (make_commit(1)[0], b""),
        (make_commit(1)[0], struct.pack(">h", 5)),  # a version that does not exist
        (make_commit(1)[0], struct.pack(">h", -1)),
        (make_commit(1)[0], b"\0\4\0\0"),
        (struct.pack(">h", 2) + b"\0\1g", b"\0\4\xff\xff\xff"),
    ],
)
def test_records_that_are_unknown_or_malformed_are_left_out(
    record: tuple[bytes | None, bytes | None], caplog: pytest.LogCaptureFixture
) -> None:
    world = load_world(make_batch(make_commit(1)), make_batch(record), make_batch(make_commit(2, 1)))
    assert [world.committed(partition=0), world.committed(partition=1)] == [1, 2]
    assert "left out 1 records" in caplog.text


def test_a_batch_that_cannot_be_read_makes_its_partition_unavailable(caplog: pytest.LogCaptureFixture) -> None:
    log = log_of(make_batch(make_commit(1)))
    log.batches[0].append(make_batch(make_commit(2))[:70])
    world = World(log)
    world.turn(5)
    assert take_response(world.commit()) == [ErrorCode.NOT_COORDINATOR]
    assert "Failed to load __coordinated-0" in caplog.text


def test_a_group_record_that_names_a_member_twice_breaks_nothing() -> None:
    world = World()
    (member_id,) = world.stable()
    (record,) = world.log.records()
    value = decode_value(GroupMetadataValue, record.value or b"")
    value.members *= 2
    again = load_world(make_batch((record.key, b"\0\4" + encode_message(value, 4))))
    again.leave(member_id)
    _, answer = again.join_twice()
    again.clock.advance(DELAY_S)
    assert take_response(answer).generation_id == 3
