"""The periodic tasks of a broker: retention, flushing, checkpoints, free space, and forgetting idle producers.

Each task goes through the logs on the reactor thread, some of them a turn, so that no request waits for ten thousand
logs. The disk threads do the work on files.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred, gatherResults, maybeDeferred

from kafkacompat.storage.log.state import is_transient
from kafkacompat.storage.log_config import LONG_MAX
from kafkacompat.timers import Clock, PeriodicCall, now_ms, yield_unhurried
from kafkacompat.upkeep.idle_producers import IdleProducers

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from kafkacompat.config import BrokerConfig
    from kafkacompat.partitions.directories import Directory
    from kafkacompat.partitions.partition import Partition
    from kafkacompat.partitions.replica_manager import ReplicaManager
    from kafkacompat.storage.log.log import Log
    from kafkacompat.storage.segment.segment import Segment

log = logging.getLogger(__name__)

FREE_SPACE_INTERVAL_MS = 1000
PRODUCERS_INTERVAL_MS = 5000


class Housekeeping:
    """The tasks and their timers; the intervals are Kafka's properties."""

    def __init__(self, clock: Clock, config: BrokerConfig, replicas: ReplicaManager) -> None:
        self.clock = clock
        self.replicas = replicas
        self._producers = IdleProducers(clock, replicas, config.int("kafkacompat.producer.ids.max"))
        self._loops: list[PeriodicCall] = []
        self._stopped = False
        self.is_cleaning: Callable[[Partition], bool] = lambda _: False
        """Returns whether compaction is replacing a partition's segments; the log cleaner sets it."""
        self._intervals: dict[str, Callable[[], object]] = {
            "log.retention.check.interval.ms": self.delete_expired_segments,
            "log.flush.scheduler.interval.ms": self.flush_old_data,
            "log.flush.offset.checkpoint.interval.ms": self.checkpoint,
            "producer.id.expiration.check.interval.ms": self.expire_producers,
        }
        self._config = config

    def start(self) -> None:
        """Begin; each task runs for the first time after its interval, but free space is measured now."""
        for name, task in self._intervals.items():
            self._start(name, task, self._config.int(name))
        self.watch_free_space()
        self._start("kafkacompat.disk.reserve.bytes", self.watch_free_space, FREE_SPACE_INTERVAL_MS)
        self._start("kafkacompat.producer.ids.max", self.limit_producers, PRODUCERS_INTERVAL_MS)

    def _start(self, name: str, task: Callable[[], object], interval_ms: int) -> None:
        # Kafka's "never" is the largest long, which no timer takes.
        if interval_ms < LONG_MAX:
            loop = PeriodicCall(self.clock, self._run_guarded, name, task)
            loop.start(max(interval_ms, 1) / 1000, now=False)
            self._loops.append(loop)

    def stop(self) -> None:
        """Stop the timers, and delete nothing from now on."""
        self._stopped = True
        for loop in self._loops:
            loop.stop()
        self._loops.clear()

    def _run_guarded(self, name: str, task: Callable[[], object]) -> Deferred[Any]:
        """Run a task and log its failure; it runs again after its interval, but not before it has ended."""
        return maybeDeferred(task).addErrback(
            lambda failure: log.error("the task of %s failed", name, exc_info=failure.value)
        )

    def _run_for_each(self, task: Callable[[Partition], object]) -> Deferred[None]:
        async def run() -> None:
            async for partition in yield_unhurried(self.clock, list(self.replicas)):
                if not partition.closed:
                    task(partition)

        return Deferred.fromCoroutine(run())

    # The tasks

    def delete_expired_segments(self) -> Deferred[None]:
        """Remove segments beyond their topic's retention limits from the logs, and their files later."""
        return self._run_for_each(self.delete_expired)

    def delete_expired(self, partition: Partition) -> None:
        """Remove one partition's expired segments; while it is compacted, the log cleaner calls this afterwards."""
        if self.is_cleaning(partition) or partition.is_truncating:
            return
        expired = partition.log.trimmer.expired_segments(
            high_watermark=partition.high_watermark.offset, now_ms=now_ms(self.clock)
        )
        if expired and expired[-1] is partition.log.segments.active:
            # The next round deletes the active segment, once another one has taken its place.
            partition.roll()
            expired.pop()
        if expired:
            log.info("%r: deleting %d expired segments", partition, len(expired))
            partition.log.trimmer.detach(expired)
            partition.state.count_bytes()
            # The files are renamed at once, so that a restart ignores them, and removed when no reader has them open.
            partition.disk.run(partition.log.trimmer.mark_deleted, expired).addErrback(partition.report_disk_failure)
            delay_s = partition.log.config.file_delete_delay_ms / 1000
            self.clock.callLater(delay_s, self._delete_files, partition, expired)

    def _delete_files(self, partition: Partition, segments: Sequence[Segment]) -> None:
        # The next start removes the files otherwise.
        if not (partition.closed or self._stopped):
            deleting = partition.disk.run(partition.log.trimmer.delete_segments, segments)
            deleting.addErrback(partition.report_disk_failure)

    def flush_old_data(self) -> Deferred[None]:
        """Sync the logs that have waited for flush.ms."""
        return self._run_for_each(self._flush_overdue)

    def _flush_overdue(self, partition: Partition) -> None:
        if partition.log.maintenance.flush_is_overdue(now_ms(self.clock)):
            partition.flush().addErrback(lambda _: None)

    def checkpoint(self) -> Deferred[Any]:
        """Write the checkpoints that the next start reads: recovery points, log start offsets, high watermarks."""
        checkpoints = {
            directory: _CheckpointContents() for directory in self.replicas.directories if not directory.offline
        }

        def note(partition: Partition) -> None:
            name = (partition.topic, partition.index)
            home = self.replicas.directories.find_home(name)
            if home in checkpoints:
                checkpoints[home].logs.append(partition.log)
                checkpoints[home].high_watermarks[name] = partition.high_watermark.offset

        return self._run_for_each(note).addCallback(
            lambda _: gatherResults([_write_checkpoint(*entry) for entry in checkpoints.items()], consumeErrors=True)
        )

    def watch_free_space(self) -> None:
        """Measure the free space of the log directories."""
        for directory in self.replicas.directories:
            if not directory.offline:
                directory.space.measure_if_needed()

    def expire_producers(self) -> Deferred[None]:
        """Forget producers that have been idle for producer.id.expiration.ms."""
        return Deferred.fromCoroutine(self._producers.forget_expired())

    def limit_producers(self) -> Deferred[None]:
        """Forget the producers idle for longest where there are more than kafkacompat.producer.ids.max."""
        return Deferred.fromCoroutine(self._producers.forget_excess())


class _CheckpointContents:
    """The contents of one directory's checkpoints."""

    def __init__(self) -> None:
        self.logs: list[Log] = []
        self.high_watermarks: dict[tuple[str, int], int] = {}


def _write_checkpoint(directory: Directory, checkpoint: _CheckpointContents) -> Deferred[Any]:
    writing = directory.disk.run(directory.storage.checkpoint, checkpoint.logs, checkpoint.high_watermarks)
    return writing.addErrback(_write_failed, directory)


def _write_failed(failure: Failure, directory: Directory) -> Failure:
    """Take the directory offline, unless the problem is transient (lack of space): the next checkpoint tries again."""
    problem = failure.value
    if isinstance(problem, OSError) and not is_transient(problem):
        directory.report_failure(problem)
    return failure
