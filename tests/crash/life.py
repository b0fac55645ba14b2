"""A node under random use, whose power may fail at every operation of its file system.

Everything is done by the broker's own services: partitions, housekeeping, the log cleaner, moves, group commit. The
disks' threads and the reactor take turns at random, and while a disk's thread is in the middle of something there are
appends. One seed is one life.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kafkacompat.partitions.partition import Partition
from kafkacompat.partitions.partition_appender import Appended
from kafkacompat.storage.log.log import AppendResult
from kafkacompat.storage.producers.transaction_marker import Marker, build_marker_batch
from kafkacompat.storage.producers.verification import NOT_VERIFIED
from kafkacompat.wire.record_batch import build_batch
from tests.crash.examination import LONGER_THAN_DELETION_S
from tests.crash.machine import COMPACTED_TOPIC, PATHS
from tests.crash.model import PartitionModel
from tests.crash.world import World
from tests.fakes.power_failures import Survivors

PRODUCERS = (-1, 1, 2, 3)
TRANSACTIONAL = (4, 5)
"""Producers of topics that are not compacted."""
KEYS = 5


class Life(World):
    """``at_each_operation`` is called before every operation of the file system."""

    def __init__(self, seed: int, steps: int, at_each_operation: Callable[[Life, str], None]) -> None:
        self._at_each_operation = at_each_operation
        self._numbers = count()
        self._wrong_answers: list[str] = []
        self._deleting: Deferred[None] | None = None
        super().__init__(seed)
        for name, partitions in (("t", 2), (COMPACTED_TOPIC, 1)):
            self.create(name, partitions)
        steps_of: dict[Callable[[], None], int] = {
            self.append: 70,
            self.append_again: 5,
            self.end_transaction: 15,
            self.work_a_little: 60,
            self.turn: 25,
            self.work: 6,
            self.flush: 3,
            self.roll: 8,
            self.checkpoint: 4,
            self.delete_records: 4,
            self.retain: 4,
            self.let_time_pass: 4,
            self.move: 3,
            self.create_or_delete: 5,
            self.truncate: 2,
            self.restart: 1,
            self.crash: 3,
        }
        self._steps = self.random.choices(list(steps_of), list(steps_of.values()), k=steps)

    def live(self) -> None:
        """Do all steps."""
        for step in self._steps:
            # Each may need a segment, and other work can run while one is created.
            self.appends_meanwhile = 3
            step()
            assert not self._wrong_answers, self._wrong_answers
        self.end()

    def before_operation(self, operation: str) -> None:
        """See World."""
        self._at_each_operation(self, operation)

    # --- ends and beginnings ---

    def crash(self) -> None:
        """Lose the power, or the process, and continue with the files that are left."""
        way = self.random.choice([None, ("none", "none"), ("any", "torn")])
        self.note_progress()
        case = self.case(power_fails=way is not None)
        left = self.files.killed() if way is None else self.files.after(Survivors(*way, self.random))
        # The old process has no effect any more, but its coroutines have to end.
        self.end()
        for name, promise in case.promises.items():
            self.models[name].fall_back(promise)
        self.begin(left)
        self._deleting = None
        self.adopt(case.promises)

    def restart(self) -> None:
        """Stop in good order, and start."""
        self.until(Deferred.fromCoroutine(self.cleaner.stop()))
        self.until(Deferred.fromCoroutine(self.node.replicas.prepare_to_close()))
        for directory, logs in self.node.replicas.logs_by_directory():
            directory.storage.close(logs)
        self.note_progress()
        case = self.case(power_fails=False)
        self.files.crash(lose_unsynced=self.random.random() < 0.5)
        self.begin(self.files)
        self._deleting = None
        self.adopt(case.promises)

    # --- appending ---

    def append(self) -> None:
        """Send a batch."""
        partition = self.partition()
        model = self.models[partition.topic, partition.index]
        producer_id = self.random.choice(PRODUCERS if model.is_compacted else PRODUCERS + TRANSACTIONAL)
        sent = [
            batch for batch in model.batches if batch.header.producer_id == producer_id and not batch.header.is_control
        ]
        sequence = sent[-1].last_sequence + 1 if sent else 0
        producer: dict[str, Any] = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
        records: list[Any] = [
            (self.node.now_ms, b"%d" % self.random.randrange(KEYS), self._value(), [])
            for _ in range(self.random.randint(1, 3))
        ]
        data = build_batch(
            records, transactional=producer_id in TRANSACTIONAL, **(producer if producer_id >= 0 else {})
        )
        self._send(partition, model, data, lambda: partition.append(data, self.node.now_ms, guard=NOT_VERIFIED))

    def end_transaction(self) -> None:
        """Send a marker, also where no transaction is open, as a coordinator that was killed may do."""
        partition = self.partition()
        model = self.models[partition.topic, partition.index]
        if not model.is_compacted:
            marker = Marker(self.random.choice(TRANSACTIONAL), 0, 0, self.random.random() < 0.4, 0)
            data = build_marker_batch(marker, partition.log.config, self.node.now_ms).join_parts()
            self._send(partition, model, data, lambda: partition.append_marker(marker, self.node.now_ms))

    def _send(self, partition: Partition, model: PartitionModel, data: bytes, append: Callable[[], Appended]) -> None:
        expected = model.send(data, self.leader_epoch)

        def answered(result: AppendResult | Failure) -> None:
            if isinstance(result, AppendResult):
                self._expect(result, (expected.base_offset, False))
                model.acknowledged = max(model.acknowledged, result.last_offset + 1)
            elif self.models.get((partition.topic, partition.index)) is model:
                self._wrong_answers.append(f"{partition} was not deleted but answers {result.value}")

        _when_appended(append(), answered)

    def _expect(self, result: AppendResult, expected: tuple[int, bool]) -> None:
        if (result.base_offset, result.duplicate) != expected:
            self._wrong_answers.append(f"{result} instead of offset and duplicate {expected}")

    def _value(self) -> bytes | None:
        return None if self.random.random() < 0.1 else b"%d " % next(self._numbers) * self.random.randint(1, 20)

    def append_again(self) -> None:
        """Send one of the last batches of a producer again, which changes nothing."""
        partition = self.partition()
        model = self.models[partition.topic, partition.index]
        last = {batch.header.producer_id: batch for batch in model.batches}
        again = last.get(self.random.choice(PRODUCERS[1:]))
        if again is None or again.last_offset < model.start:
            return

        def answered(result: AppendResult | Failure) -> None:
            if isinstance(result, AppendResult):
                self._expect(result, (again.base_offset, True))

        _when_appended(partition.append(again.records(), self.node.now_ms), answered)

    def let_time_pass(self) -> None:
        """Files are removed for good, and compaction looks for work."""
        self.node.clock.advance(LONGER_THAN_DELETION_S)

    # --- maintenance ---

    def flush(self) -> None:
        """Sync a partition."""
        self.partition().flush().addErrback(lambda _: None)

    def roll(self) -> None:
        """Begin a segment."""
        partition = self.partition()
        if partition.log.segments.active.size_bytes:
            partition.roll()

    def checkpoint(self) -> None:
        """Write down how far everything is on the disk."""
        self.housekeeping.checkpoint()

    def delete_records(self) -> None:
        """Let a partition begin later; it must not be forgotten once it is answered."""
        partition = self.partition()
        model = self.models[partition.topic, partition.index]
        if model.is_compacted or any(move.partition is partition for move in self.node.moves):
            return
        offset = self.random.randint(partition.log.log_start_offset, partition.high_watermark.offset)
        self._save(partition, model, offset)

    def _save(self, partition: Partition, model: PartitionModel, offset: int) -> None:
        def saved(_: int) -> None:
            model.start_saved = max(model.start_saved, offset)

        model.start = max(model.start, offset)
        self.node.replicas.delete_records(partition, offset).addCallbacks(saved, lambda _: None)

    def retain(self) -> None:
        """Let retention delete segments beyond its limit."""
        self.housekeeping.delete_expired_segments()

    def move(self) -> None:
        """Bring a partition to one of the directories."""
        partition = self.partition()
        path = self.random.choice(PATHS)
        self.node.replicas.move(partition.topic, partition.index, path).addErrback(lambda _: None)

    def truncate(self) -> None:
        """Truncate the last batches, as a follower may have to."""
        self.node.clock.advance(0)
        self.work()
        partition = self.partition()
        log, model = partition.log, self.models[partition.topic, partition.index]
        if model.is_compacted or model.end != partition.high_watermark.offset:
            return
        offset = self.random.choice([batch.base_offset for batch in model.batches[-6:]] or [model.end])
        if offset < log.log_start_offset:
            return
        model.allow_truncation(offset)
        log.trimmer.truncate_to(offset)
        model.truncate(offset)
        home = self.node.replicas.directories.find_home((partition.topic, partition.index))
        assert home is not None
        home.storage.checkpoint([log])
        partition.state.high_watermark = log.end_position()

    # --- topics ---

    def create_or_delete(self) -> None:
        """A topic that comes and goes under one name."""
        if "passing" in self.topics:
            image = self.topics.pop("passing")
            del self.models["passing", 0]
            self._deleting = self.node.replicas.delete_partitions(image)
        elif self._deleting is None or self._deleting.called:
            self.create("passing", 1)


def _when_appended(appended: Appended, answered: Callable[[AppendResult | Failure], None]) -> None:
    if isinstance(appended, Deferred):
        appended.addBoth(answered)
    else:
        answered(appended)
