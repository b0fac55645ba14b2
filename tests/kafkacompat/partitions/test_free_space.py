"""A full disk: who is refused, who is not, and how it comes back."""

from __future__ import annotations

import errno

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.partitions.free_space import STEP_BYTES, FreeSpace
from kafkacompat.partitions.partition import Partition
from kafkacompat.partitions.partition_appender import Appended
from kafkacompat.storage.files.filesystem import DiskUsage
from kafkacompat.storage.intake.validation import check_batch
from kafkacompat.storage.log.log import AppendResult
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.record_batch import build_batch
from tests.fakes.memory_files import MemoryFiles
from tests.kafkacompat.metadata.deferreds import outcome, refusal
from tests.kafkacompat.partitions.node import Node, topic
from tests.kafkacompat.upkeep.moves import T, folders, home, two

RESERVE = 10 * STEP_BYTES
ENOUGH = RESERVE + 2 * STEP_BYTES


class Space:
    """The free space of /a, in a file system that answers when it is told to."""

    def __init__(self, reserve_bytes: int = RESERVE) -> None:
        self.asked: list[Deferred[DiskUsage]] = []
        self.space = FreeSpace("/a", self._measure, reserve_bytes)

    def _measure(self) -> Deferred[DiskUsage]:
        self.asked.append(Deferred())
        return self.asked[-1]

    def answer(self, free_bytes: int) -> None:
        """Answer the one question that is open."""
        asked, self.asked = self.asked, []
        assert len(asked) == 1
        asked[0].callback(DiskUsage(1 << 40, free_bytes))

    def grant(self, free_bytes: int) -> None:
        """Let it look at the disk."""
        self.space.measure_if_needed()
        self.answer(free_bytes)

    def refuses(self, size_bytes: int) -> bool:
        """Return whether a client may not write this many bytes."""
        try:
            self.space.reserve(size_bytes)
        except KafkaError as problem:
            assert problem.code == ErrorCode.KAFKA_STORAGE_ERROR
            return True
        return False


def test_clients_take_what_is_beyond_the_reserve_and_no_more() -> None:
    space = Space()
    space.grant(RESERVE + 100 * STEP_BYTES)
    assert not space.refuses(100 * STEP_BYTES)
    assert space.refuses(1)
    assert not space.space.is_full  # it has been asked whether that is still so
    space.answer(RESERVE + 100 * STEP_BYTES)
    assert not space.refuses(1)


def test_the_file_system_is_asked_before_it_is_too_late_and_not_for_each_append() -> None:
    space = Space()
    space.grant(RESERVE + 100 * STEP_BYTES)
    for _ in range(50):
        assert not space.refuses(STEP_BYTES)
    assert space.asked == []
    assert not space.refuses(STEP_BYTES)
    assert not space.refuses(STEP_BYTES)
    assert len(space.asked) == 1


def test_what_is_written_while_the_file_system_answers_counts() -> None:
    space = Space()
    space.grant(RESERVE + 100 * STEP_BYTES)
    space.space.measure()
    space.space.reserve(90 * STEP_BYTES)
    space.answer(RESERVE + 100 * STEP_BYTES)
    assert space.refuses(11 * STEP_BYTES)


def test_one_line_when_it_begins_and_one_when_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    space = Space()
    space.grant(RESERVE + STEP_BYTES - 1)
    assert [space.refuses(1) for _ in range(3)] == [True] * 3
    space.grant(RESERVE - 5)
    space.grant(ENOUGH - 1)
    assert space.refuses(1)
    assert len(caplog.records) == 1
    assert caplog.messages[0].startswith("log directory /a is full (11534335 bytes are free, kafkacompat.disk.reserve")
    space.grant(ENOUGH)
    assert not space.refuses(1)
    assert caplog.messages[1:] == ["log directory /a has room again: clients can produce to it"]


def test_a_batch_for_which_there_is_no_room_fills_it_until_there_is_twice_as_much() -> None:
    space = Space()
    space.grant(RESERVE + 5 * STEP_BYTES)
    assert space.refuses(6 * STEP_BYTES)
    space.answer(RESERVE + 5 * STEP_BYTES)
    assert space.refuses(1)
    space.grant(RESERVE + 11 * STEP_BYTES)
    assert space.refuses(1)
    space.grant(RESERVE + 12 * STEP_BYTES)
    assert not space.refuses(6 * STEP_BYTES)


def test_without_a_reserve_nothing_is_asked_until_a_write_fails() -> None:
    space = Space(reserve_bytes=0)
    space.space.measure_if_needed()
    space.space.note_failed_write(OSError(errno.EIO, "broken"))
    assert (space.asked, space.refuses(1 << 50)) == ([], False)
    space.space.note_failed_write(OSError(errno.ENOSPC, "full"))
    assert space.refuses(1)
    space.grant(2 * STEP_BYTES)
    assert not space.refuses(1 << 50)


def test_a_file_system_that_cannot_be_asked_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    space = Space()
    space.space.measure_if_needed()
    space.asked.pop().errback(OSError(errno.EIO, "broken"))
    assert "the free space of /a cannot be measured" in caplog.text
    space.grant(RESERVE)
    assert space.refuses(1)


# Partitions


def full(reserve_bytes: int = RESERVE, config: LogConfig | None = None) -> tuple[Node, Partition]:
    """A node with t-0 on a disk that is full up to the reserve."""
    node = Node(reserve_bytes=reserve_bytes, config=config)
    node.open(T)
    partition = node.replicas.find("t", 0)
    node.append(partition)
    node.files.free_bytes = RESERVE
    watch(node)
    return node, partition


def watch(node: Node) -> None:
    for directory in node.directories:
        directory.space.measure_if_needed()
    node.work()


@pytest.mark.parametrize(("devices", "is_shared"), [({}, True), ({"/b": 1}, False)])
def test_directories_of_one_file_system_share_its_room(devices: dict[str, int], is_shared: bool) -> None:
    files = MemoryFiles()
    files.devices = devices
    node = Node("/a", "/b", files=files, reserve_bytes=RESERVE)
    files.free_bytes = RESERVE + 100 * STEP_BYTES
    watch(node)
    first, second = (directory.space for directory in node.directories)
    first.reserve(60 * STEP_BYTES)
    if is_shared:
        with pytest.raises(KafkaError):
            second.reserve(60 * STEP_BYTES)
        first.reserve(0)  # what was refused is not taken from anybody
        second.reserve(40 * STEP_BYTES)
        with pytest.raises(KafkaError):
            first.reserve(1)
    else:
        second.reserve(60 * STEP_BYTES)
        first.reserve(40 * STEP_BYTES)


def test_producers_are_refused_and_the_broker_itself_goes_on() -> None:
    node, partition = full()
    with pytest.raises(KafkaError) as refused:
        partition.append(node.batch(), node.now_ms)
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    own = partition.append(node.batch(), node.now_ms, from_client=False)
    assert isinstance(own, AppendResult)
    partition.roll()
    node.work()
    assert partition.log.segments.active.base_offset == 2
    deleting = node.replicas.delete_records(partition, 1)
    node.work()
    assert outcome(deleting) == 1
    node.files.free_bytes = ENOUGH
    watch(node)
    assert node.append(partition).base_offset == 2


def test_a_write_that_finds_no_room_is_cut_back_and_refuses_those_behind_it_at_once() -> None:
    node, partition = full(reserve_bytes=0)
    node.files.fail_on("append", errno.ENOSPC, after_bytes=30)
    for _ in range(2):
        with pytest.raises(KafkaError):
            partition.append(node.batch(), node.now_ms)
    node.files.free_bytes = ENOUGH
    watch(node)
    assert node.append(partition).base_offset == 1
    assert not node.directories[0].offline


def sent(partition: Partition, now_ms: int, sequence: int) -> Appended:
    """A batch of an idempotent producer, as the handler of Produce appends it."""
    data = build_batch([(now_ms, b"k", b"v", [])], producer_id=7, producer_epoch=0, base_sequence=sequence)
    return partition.append(check_batch(data, partition.log.config, now_ms, from_client=True), now_ms)


@pytest.mark.parametrize("why", ["reserve", "write", "roll"])
def test_a_new_producers_batch_that_found_no_room_is_not_overtaken(why: str) -> None:
    """Or it could never be stored: an unknown producer may begin with any sequence number."""
    node, partition = full(
        RESERVE if why == "reserve" else 0, LogConfig(segment_bytes=200 if why == "roll" else 10_000)
    )
    if why != "reserve":
        node.files.fail_on("append" if why == "write" else "open", errno.ENOSPC)
    if why == "roll":
        line = [sent(partition, node.now_ms, sequence) for sequence in (17, 18)]
        node.work()
        assert [refusal(append) for append in line if isinstance(append, Deferred)] == [
            ErrorCode.KAFKA_STORAGE_ERROR
        ] * 2
    else:
        with pytest.raises(KafkaError):
            sent(partition, node.now_ms, 17)
    partition.log.config = LogConfig()
    node.files.free_bytes = ENOUGH
    watch(node)
    with pytest.raises(KafkaError) as caught:
        sent(partition, node.now_ms, 18)
    assert caught.value.code == ErrorCode.NOT_ENOUGH_REPLICAS
    for sequence in (17, 18):
        assert isinstance(sent(partition, node.now_ms, sequence), AppendResult)
    assert not len(partition.log.producer_state.verifications)


@pytest.mark.parametrize("operation", ["open", "append"])
def test_a_segment_for_which_there_is_no_room_is_made_later(operation: str, caplog: pytest.LogCaptureFixture) -> None:
    node, partition = full(reserve_bytes=0, config=LogConfig(segment_bytes=200))
    node.files.fail_on(operation, errno.ENOSPC, times=2)
    for count in (2, 1):
        lost = [partition.append(node.batch(), node.now_ms, from_client=False) for _ in range(count)]
        node.work()
        codes = [refusal(append) for append in lost if isinstance(append, Deferred)]
        assert codes == [ErrorCode.KAFKA_STORAGE_ERROR] * count
    assert len([message for message in caplog.messages if "is full (" in message]) == 1
    assert len(caplog.messages) == 2  # with the one that says what failed
    watch(node)
    assert node.append(partition).base_offset == 1
    assert not node.directories[0].offline


def test_new_partitions_go_where_there_is_room() -> None:
    node = Node("/a", "/b", reserve_bytes=RESERVE)
    node.open(topic("t", 4))
    node.files.free_bytes = RESERVE
    node.directories[0].space.measure_if_needed()
    node.work()
    node.replicas.directories.check_room()
    node.open(topic("u", 2, b"u" * 16))
    assert [name for name in node.names("b") if name.startswith("u-")] == ["u-0", "u-1"]
    node.directories[1].space.measure_if_needed()
    node.work()
    with pytest.raises(KafkaError) as refused:
        node.replicas.directories.check_room()
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_partition_does_not_move_to_a_full_directory(small_steps: None) -> None:
    node, partition = two()
    for _ in range(30):
        node.append(partition)
    node.directories[1].space.note_failed_write(OSError(errno.ENOSPC, "full"))
    moving = node.replicas.move("t", 0, "/b")
    node.work()
    outcome(moving)
    assert (home(node), folders(node, "/b")) == ("/a", [])
    assert node.append(partition).base_offset == 30
