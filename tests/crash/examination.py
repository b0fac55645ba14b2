"""Starting after a crash, and comparing the contents with the promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import NamedTuple

from kafkacompat.partitions.partition import Partition
from kafkacompat.storage.directory.partition_folders import DELETE_SUFFIX, FUTURE_SUFFIX
from kafkacompat.storage.inspection.directory_check import check_target, find_check_target
from kafkacompat.storage.inspection.findings import Finding, UnreadablePath
from kafkacompat.storage.segment.segment_files import CLEANED_SUFFIX, DELETED_SUFFIX, SWAP_SUFFIX
from kafkacompat.wire.errors import KafkaError
from kafkacompat.wire.record_batch import BatchHeader, read_header, read_records, split_batches
from tests.crash.machine import PATHS, start_node
from tests.crash.model import ASSIGNED_BYTES, Batch, Promise, Promises, Topics
from tests.crash.transactions import Fates, read_committed
from tests.fakes.memory_files import MemoryFiles
from tests.fakes.power_failures import Survivors
from tests.kafkacompat.partitions.node import Node

FOLDER_LEFTOVERS = (DELETE_SUFFIX, FUTURE_SUFFIX)
FILE_LEFTOVERS = (DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX, ".tmp")
LONGER_THAN_DELETION_S = 61


class Anomaly(AssertionError):  # noqa: N818 (what it is called everywhere here)
    """Something that must not be."""


def expect(condition: bool, message: str) -> None:
    """Raise Anomaly unless a condition holds."""
    if not condition:
        raise Anomaly(message)


class ExaminedBatch(NamedTuple):
    """A batch that is in a log."""

    header: BatchHeader
    data: bytes


class State(NamedTuple):
    """All that a partition is after a start."""

    start_offset: int
    end_offset: int
    batches: tuple[ExaminedBatch, ...]
    producers: dict[int, tuple[int, tuple[int, int] | None]]
    """Id -> epoch, and the sequence number and the offset that its last batch ends with."""
    epochs: list[tuple[int, int]]
    stable_offset: int
    committed: tuple[int, ...]
    """The offsets of batches for readers of committed records."""


def state_of(partition: Partition) -> State:
    """Read a partition, each batch by itself, so that every one is looked up in the indexes."""
    log = partition.log
    producers = {
        producer.producer_id: (
            producer.producer_epoch,
            (producer.batches[-1].last_sequence, producer.batches[-1].last_offset) if producer.batches else None,
        )
        for producer in log.producer_state.producers.values()
    }
    batches = tuple(_read_batches(partition))
    return State(
        log.log_start_offset,
        log.log_end_offset,
        batches,
        producers,
        list(log.leader_epochs.entries),
        partition.last_stable_offset,
        tuple(read_committed(partition)),
    )


def _read_batches(partition: Partition) -> Iterator[ExaminedBatch]:
    offset, end = partition.log.log_start_offset, partition.high_watermark.offset
    while offset < end:
        region = partition.log.read(offset, 1, partition.high_watermark)
        expect(region is not None, f"{partition} has nothing to read at {offset} of {end}")
        assert region is not None
        for data in split_batches(region.pread(0, region.size_bytes)):
            header = read_header(data)
            expect(header.last_offset >= offset, f"{partition} answers {offset} with {header}")
            yield ExaminedBatch(header, bytes(data))
            offset = header.last_offset + 1
        region.release()


class Case(NamedTuple):
    """A machine whose power failed, or (``power_fails`` false) whose broker was killed."""

    topics: Topics
    promises: Promises
    leader_epoch: int
    syncs_always: bool
    power_fails: bool

    def start(self, files: MemoryFiles) -> Node:
        """Start a broker; Anomaly when it, or a partition, does not."""
        return start_node(files, self.topics, self.leader_epoch, syncs_always=self.syncs_always)

    def states(self, node: Node) -> dict[tuple[str, int], State]:
        """Every partition's state."""
        try:
            return {name: state_of(node.replicas.find(*name)) for name in self.promises}
        except KafkaError as problem:
            raise Anomaly(f"a partition cannot be read: {problem}") from problem

    def examine(self, files: MemoryFiles, rng: Random) -> None:
        """Start twice on the disk that a crash left, and check all partitions; raises Anomaly."""
        if rng.random() < 0.2:
            files = self._crash_at_the_start(files, rng)
        node = self.start(files)
        states = self.states(node)
        for name, promise in self.promises.items():
            check_promise(name, promise, states[name])
        files.crash(lose_unsynced=self.power_fails and self.syncs_always)
        again = self.start(files)
        expect(self.states(again) == states, f"the second start finds {again} otherwise than the first: {states}")
        if rng.random() < 0.25:
            self._close(again, states)

    def _crash_at_the_start(self, files: MemoryFiles, rng: Random) -> MemoryFiles:
        """Let the power fail again at one of the start's operations."""
        left = [rng.randrange(40)]
        fallen: list[MemoryFiles] = []

        def count(_: str) -> None:
            left[0] -= 1
            if left[0] == 0:
                fallen.append(files.after(Survivors("any", "torn", rng)) if self.power_fails else files.killed())

        files.before_change = count
        self.start(files)
        files.before_change = lambda _: None
        if not fallen:
            files.crash(lose_unsynced=self.power_fails)
        return fallen[0] if fallen else files

    def _close(self, node: Node, states: dict[tuple[str, int], State]) -> None:
        """Stop in good order: nothing is left over, every file says the same, and the next start believes it."""
        node.clock.advance(LONGER_THAN_DELETION_S)
        node.work()
        for directory, logs in node.replicas.logs_by_directory():
            directory.storage.close(logs)
        expect_no_leftovers(node.files)
        expect_sound(node.files)
        expect(self.states(self.start(node.files)) == states, "a clean stop changed something")


def check_promise(name: tuple[str, int], promise: Promise, state: State) -> None:
    """Compare a partition with its promise; raises Anomaly."""
    sent = [batch for batch in promise.batches if state.start_offset <= batch.last_offset < state.end_offset]
    label = f"{name[0]}-{name[1]} [{state.start_offset}, {state.end_offset})"
    expect(state.end_offset >= promise.end_at_least, f"{label} should reach {promise.end_at_least}")
    expect(
        promise.start_at_least <= state.start_offset <= promise.start_at_most,
        f"{label} should begin in [{promise.start_at_least}, {promise.start_at_most}]",
    )
    last_sent = promise.batches[-1].last_offset + 1 if promise.batches else 0
    expect(state.end_offset <= max(last_sent, promise.start_at_most), f"{label} should end by {last_sent}")
    (_check_compacted if promise.is_compacted else _check_batches)(label, sent, state)
    _check_producers(label, promise, state)
    _check_transactions(label, promise, state)
    _check_epochs(label, state)


def _check_batches(label: str, sent: Sequence[Batch], state: State) -> None:
    """Check that the log holds the batches that were sent, in their order."""
    stored = [(batch.header.base_offset, batch.header.partition_leader_epoch) for batch in state.batches]
    expected = [(batch.base_offset, batch.leader_epoch) for batch in sent]
    expect(stored == expected, f"{label} holds the batches (offset, epoch) {stored}, not {expected}")
    for batch, stored_batch in zip(sent, state.batches, strict=True):
        expect(stored_batch.data[ASSIGNED_BYTES:] == batch.body, f"{label} holds another batch at {batch.base_offset}")
    expect(not sent or sent[-1].last_offset + 1 == state.end_offset, f"{label} does not end with a batch")


def _check_compacted(label: str, sent: Sequence[Batch], state: State) -> None:
    """Check that only sent records are there, in their order; a record is missing only if a later one of its key is there."""
    records = {
        record.offset: (record.key, record.value)
        for batch in sent
        for record in read_records(batch.records(batch.base_offset))
    }
    offsets = [record.offset for batch in state.batches for record in read_records(batch.data)]
    stored = {
        record.offset: (record.key, record.value) for batch in state.batches for record in read_records(batch.data)
    }
    expect(offsets == sorted(set(offsets)), f"{label} has offsets out of order: {offsets}")
    expect(stored.items() <= records.items(), f"{label} has records that were never sent")
    latest = {key: offset for offset, (key, _) in sorted(stored.items())}
    for offset, (key, value) in records.items():
        if offset >= state.start_offset and offset not in stored:
            expect(latest.get(key, -1) > offset, f"{label} lost the last record of {key!r}, {value!r}, at {offset}")


def _check_producers(label: str, promise: Promise, state: State) -> None:
    """Check that the last batch of each producer is remembered; a producer whose batches are gone may be forgotten."""
    last: dict[int, Batch | None] = {}
    for batch in promise.batches:
        if batch.header.producer_id >= 0 and batch.last_offset < state.end_offset:
            if batch.header.is_control:
                last.setdefault(batch.header.producer_id, None)
            else:
                last[batch.header.producer_id] = batch
    for producer_id, known in last.items():
        remembered = state.producers.get(producer_id)
        expected = 0, None if known is None else (known.last_sequence, known.last_offset)
        may_be_forgotten = known is None or known.last_offset < state.start_offset
        message = f"{label} remembers of producer {producer_id} {remembered}, not {expected}"
        expect(remembered == expected or (may_be_forgotten and remembered in (None, (0, None))), message)
    expect(state.producers.keys() <= last.keys(), f"{label} remembers producers {state.producers}, not {last.keys()}")


def _check_transactions(label: str, promise: Promise, state: State) -> None:
    """Check that readers of committed records see every batch below the last stable offset, except markers and aborted batches."""
    fates = Fates([batch for batch in promise.batches if batch.last_offset < state.end_offset], state.start_offset)
    first, last = fates.stable_offsets(state.end_offset)
    expect(
        first <= state.stable_offset <= last, f"{label} is stable up to {state.stable_offset}, not {first} to {last}"
    )
    committed = [
        batch.header.base_offset
        for batch in state.batches
        if not batch.header.is_control
        and batch.header.last_offset < state.stable_offset
        and batch.header.base_offset not in fates.aborted
    ]
    expect(list(state.committed) == committed, f"{label} shows {state.committed} as committed, not {committed}")


def _check_epochs(label: str, state: State) -> None:
    """Check that the epochs ascend, and that each batch has the epoch that the list gives to its offset."""
    expect(
        all(earlier < later for earlier, later in zip(state.epochs, state.epochs[1:], strict=False)),
        f"{label}: {state.epochs}",
    )
    for batch in state.batches:
        header = batch.header
        said = [epoch for epoch, offset in state.epochs if offset <= max(header.base_offset, state.start_offset)]
        epoch = header.partition_leader_epoch
        expect(said[-1:] == [epoch], f"{label} at {header.base_offset} is of epoch {epoch}, not {state.epochs}")


def expect_no_leftovers(files: MemoryFiles) -> None:
    """Nothing is there that no start would need."""
    for path in PATHS:
        for name in files.list(path):
            expect(not name.endswith(FOLDER_LEFTOVERS), f"{path}/{name} is left over")
            folder = f"{path}/{name}"
            if files.is_directory(folder) and "." not in name:
                left = [file_name for file_name in files.list(folder) if file_name.endswith(FILE_LEFTOVERS)]
                expect(not left, f"{left} are left over in {folder}")


def expect_sound(files: MemoryFiles) -> None:
    """`kafkacompat log verify` has nothing to say of directories that were closed in good order."""
    findings: list[Finding] = []
    unreadable: list[UnreadablePath] = []
    nothing: Callable[[int], None] = lambda _: None  # noqa: E731
    for path in PATHS:
        check_target(files, find_check_target(files, path), findings.append, nothing, unreadable.append)
    wrong = [finding for finding in findings if not (finding.note and "-stray" in finding.path)]
    expect(not wrong and not unreadable, f"verify finds {wrong} {unreadable}")
