"""Every partition of this broker: finding, opening, moving and deleting them, and deleting records."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NoReturn, Protocol, TypeAlias

from twisted.internet.defer import Deferred, gatherResults, succeed

from kafkacompat.disk import do_nothing
from kafkacompat.metadata.topic_names import format_topic
from kafkacompat.partitions.directories import Directories, Directory, PartitionName
from kafkacompat.partitions.new_partitions import NewPartitionSyncs
from kafkacompat.partitions.partition import Partition
from kafkacompat.storage.files.os_errors import describe_error
from kafkacompat.storage.log.log import Log, OffsetPosition
from kafkacompat.storage.log.state import is_transient
from kafkacompat.timers import Clock, now_ms, run_few_at_a_time
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import ZERO_UUID

if TYPE_CHECKING:
    from kafkacompat.metadata.image import PartitionImage, TopicImage
    from kafkacompat.storage.log_config import LogConfig

log = logging.getLogger(__name__)

MAX_MOVED_NAME_LENGTH = 255 - 41
"""A copy's folder adds "-", the partition, ".", 32 digits and "-future" to the name; file systems allow 255 bytes."""

FROZEN_TOGETHER = 500
"""After this many opened partitions the existing objects are hidden from the garbage collector.

It took a tenth of a second for each pass over ten thousand partitions. A deleted partition is freed without it (see the
tests)."""

LogConfigOf: TypeAlias = "Callable[[str], LogConfig]"


class CopyProgress(Protocol):
    """The copy of a log that is being made."""

    @property
    def size_bytes(self) -> int:
        """The bytes copied so far."""


class PartitionMove(Protocol):
    """One partition that is being copied to another log directory."""

    @property
    def partition(self) -> Partition:
        """The partition, which serves meanwhile."""

    @property
    def target(self) -> Directory:
        """The directory that the copy is made in."""

    @property
    def copy(self) -> CopyProgress:
        """The copy."""

    @property
    def offset_lag(self) -> int:
        """How many offsets the copy lacks, at most."""


class PartitionMover(Protocol):
    """Moves partitions between log directories while they serve."""

    quiet: Callable[[Partition], Deferred[None]]
    """Stops whatever changes a partition's log, except appends; fires when nothing of it is under way."""

    def __iter__(self) -> Iterator[PartitionMove]:
        """The moves under way."""

    def request(self, partition: Partition, target: Directory) -> None:
        """Begin as `start` does; a failure is logged."""

    def start(self, partition: Partition, target: Directory) -> Deferred[None]:
        """Move a partition to a directory; fires when the copy has begun. Fails with KafkaError KAFKA_STORAGE_ERROR."""

    def cancel(self, name: PartitionName) -> Deferred[None]:
        """Give up a partition's move, if there is one; fires when nothing of it is left."""

    def stop(self) -> Deferred[None]:
        """Take no further steps; fires when none is under way."""


class ReplicaManager:
    """The partitions of this broker, by topic name and by topic id.

    The controller reports changes to it (`PartitionEvents`); it never reads metadata itself. ``log_config_of`` gives
    the effective configuration of a topic; ``moves`` moves partitions between the directories. In a cluster ``is_elsewhere``
    returns whether the metadata has a partition, by its topic's name or id, that this broker does not hold; and with
    ``awaits_roles`` a partition that is opened accepts no writes before the controller has given it a role.
    """

    def __init__(
        self,
        directories: Directories,
        log_config_of: LogConfigOf,
        clock: Clock,
        moves: PartitionMover,
        *,
        awaits_roles: bool = False,
    ) -> None:
        self.directories = directories
        self._awaits_roles = awaits_roles
        self.is_elsewhere: Callable[[str | bytes, int], bool] = lambda topic, index: False
        """Whether other brokers have a partition that this one does not have."""
        self.on_directory_offline: Callable[[], object] = do_nothing
        self.on_opened: Callable[[Partition], object] | None = None
        """Called with each partition that is opened from now on; None while no instance needs it."""
        self.on_closing: Callable[[Partition], object] | None = None
        """Called with each partition before its clients are refused for good."""
        self._log_config_of = log_config_of
        self._clock = clock
        self._partitions: dict[tuple[str | bytes, int], Partition] = {}
        self._offline: set[tuple[str | bytes, int]] = set()
        self._unfrozen = 0
        self._new = NewPartitionSyncs(clock)
        self.moves = moves
        for directory in directories:
            directory.on_failure = partial(self.take_directory_offline, directory)

    def __iter__(self) -> Iterator[Partition]:
        """Yield every open partition once."""
        return (partition for (topic, _), partition in self._partitions.items() if isinstance(topic, str))

    @property
    def offline_count(self) -> int:
        """How many replicas are offline, as their log directory has failed or their log could not be opened."""
        return sum(isinstance(topic, str) for topic, _ in self._offline)

    def find(self, topic: str | bytes, index: int) -> Partition:
        """Return the partition of a topic, which is given by its name or its id.

        Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID or KAFKA_STORAGE_ERROR; in a cluster NOT_LEADER_OR_FOLLOWER
        for a partition of other brokers.
        """
        partition = self._partitions.get((topic, index))
        if partition is None:
            raise self._absent(topic, index)
        return partition

    def find_name(self, topic_id: bytes, index: int) -> str | None:
        """Return the name of the topic whose open partition has this id and index."""
        partition = self._partitions.get((topic_id, index))
        return None if partition is None else partition.topic

    def _absent(self, topic: str | bytes, index: int) -> KafkaError:
        text = format_topic(topic)
        if (topic, index) in self._offline:
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log directory of {text}-{index} is offline")
        if self.is_elsewhere(topic, index):
            return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{text}-{index} is on other brokers")
        if isinstance(topic, bytes) and (topic, 0) not in self._partitions:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with the id {text}")
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {text}-{index}")

    # What the controller reports

    def open_partitions(self, topic: TopicImage) -> Deferred[None]:
        """Create or open the logs of a topic's partitions that are not open yet; fires when they accept writes.

        A partition that cannot be opened is offline: its requests fail with KAFKA_STORAGE_ERROR, and the others serve.
        """
        missing = [image for image in topic.partitions if (topic.name, image.partition) not in self._partitions]
        opening = run_few_at_a_time(lambda image: self._open(topic, image), missing)
        return opening.addCallback(lambda _: self._sync_new_later(topic, missing))

    def _sync_new_later(self, topic: TopicImage, images: Sequence[PartitionImage]) -> None:
        opened = (self._partitions.get((topic.topic_id, image.partition)) for image in images)
        self._new.sync_later([partition for partition in opened if partition is not None and partition.log.is_new])

    def _open(self, topic: TopicImage, image: PartitionImage) -> Deferred[None]:
        name = (topic.name, image.partition)
        try:
            directory = self.directories.find_home(name) or self.directories.choose_directory(name)
        except KafkaError as problem:
            self._cannot_open(topic, image.partition, problem)
            return succeed(None)
        is_replicated = self._awaits_roles or len(image.replicas) > 1
        opening = directory.disk.run(
            directory.storage.open_log,
            topic.name,
            image.partition,
            topic.topic_id,
            self._log_config_of(topic.name),
            now_ms(self._clock),
            is_replicated=is_replicated,
        )
        opening.addCallback(directory.sync_recovered)
        located = opening.addCallback(directory.find_high_watermark, is_replicated)
        opened = located.addCallback(self._add, directory, image.leader_epoch)
        return opened.addErrback(lambda failure: self._cannot_open(topic, image.partition, failure.value))

    def _add(self, located: tuple[Log, OffsetPosition | None], directory: Directory, leader_epoch: int) -> None:
        opened, high_watermark = located
        partition = Partition(opened, directory, leader_epoch, high_watermark)
        self._unfrozen += 1
        if self._unfrozen == FROZEN_TOGETHER:
            self._unfrozen = 0
            gc.freeze()
        for topic in _list_names(partition.topic, opened.topic_id):
            self._partitions[topic, partition.index] = partition
            self._offline.discard((topic, partition.index))
        if self.on_opened is not None:
            self.on_opened(partition)
        if directory.offline:
            self._take_offline(partition, directory)
        elif wanted := self.directories.take_wish((partition.topic, partition.index)):
            self.moves.request(partition, wanted)

    def _cannot_open(self, topic: TopicImage, index: int, problem: BaseException | None) -> None:
        log.error("%s-%d cannot be opened and is offline: %s", topic.name, index, problem)
        self._offline |= {(name, index) for name in _list_names(topic.name, topic.topic_id)}

    def take_topic_id(self, partition: Partition, topic_id: bytes) -> None:
        """Give a partition the id that its topic had not when the log was opened; the folder has it after the next flush."""
        self._partitions.pop((partition.log.topic_id, partition.index), None)
        partition.log.state.topic_id = topic_id
        self._partitions[topic_id, partition.index] = partition
        partition.log.maintenance.note_new()

    def delete_partitions(self, topic: TopicImage) -> Deferred[None]:
        """Reject a deleted topic's clients from now on; fires when its folders are renamed for removal."""
        return run_few_at_a_time(lambda image: self._delete(topic, image.partition), topic.partitions)

    def _delete(self, topic: TopicImage, index: int) -> Deferred[None]:
        partition = self._partitions.pop((topic.name, index), None)
        self._partitions.pop((topic.topic_id, index), None)
        self._offline -= {(topic.name, index), (topic.topic_id, index)}
        directory = self.directories.find_home((topic.name, index))
        self.directories.forget((topic.name, index))
        if directory is None or directory.offline:
            return succeed(None)
        if partition is None:
            # A log that could not be opened is kept for its owner to examine, under a name that no partition has.
            aside = directory.disk.run(directory.storage.set_aside, topic.name, index)
            return aside.addCallbacks(lambda _: None, lambda failure: log.error("%s", failure.value))
        self._close(partition, self._refuse_deleted(topic.name, index))
        directory.remove_deleted_later(partition.log.config.file_delete_delay_ms)
        deleting = directory.disk.run(directory.storage.delete_log, partition.log)
        # A copy in another directory may have the partition's own name already: a new partition must not get it before
        # that is gone.
        cancelled = self.moves.cancel((topic.name, index))
        return deleting.addCallback(lambda _: cancelled)

    def _refuse_deleted(self, topic: str, index: int) -> KafkaError:
        """Return the error of requests that wait for a partition whose replica here is deleted."""
        if self.is_elsewhere(topic, index):
            return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{topic}-{index} has moved to other brokers")
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic}-{index} was deleted")

    def set_aside(self, partition: Partition) -> Deferred[None]:
        """Serve a partition of no topic no longer, and rename its folder, as Kafka does with strays."""
        name = (partition.topic, partition.index)
        for topic in (partition.topic, partition.log.topic_id):
            self._partitions.pop((topic, partition.index), None)
        directory = self.directories.find_home(name)
        self.directories.forget(name)
        refusal = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{partition.topic}-{partition.index} was deleted")
        self._close(partition, refusal)
        if directory is None or directory.offline:
            return succeed(None)
        aside = directory.disk.run(directory.storage.set_log_aside, partition.log)
        cancelled = self.moves.cancel(name)
        return aside.addCallback(lambda folder: self._report_aside(partition, folder)).addCallback(lambda _: cancelled)

    def _report_aside(self, partition: Partition, folder: str) -> None:
        log.warning("%r belongs to no topic of this cluster and is set aside as %s", partition, folder)

    def reconfigure_all(self) -> None:
        """Apply the present configurations of all topics to their logs."""
        for partition in self:
            self.reconfigure(partition)

    def reconfigure(self, partition: Partition) -> None:
        """Apply the present configuration of its topic to one partition's log."""
        partition.log.config = self._log_config_of(partition.topic)

    def configs_changed(self, topic: TopicImage) -> None:
        """Apply a topic's new configuration to its logs."""
        config = self._log_config_of(topic.name)
        for image in topic.partitions:
            partition = self._partitions.get((topic.name, image.partition))
            if partition is not None:
                partition.log.config = config

    # Failing disks

    def take_directory_offline(self, directory: Directory, problem: BaseException) -> None:
        """Take a log directory offline until the next start: its partitions reject everything, the others serve."""
        if directory.offline:
            return
        directory.offline = True
        log.critical("log directory %s is taken offline: %s", directory.storage.path, problem)
        for name in directory.partitions:
            partition = self._partitions.get(name)
            if partition is not None:
                self._take_offline(partition, directory)
        self.on_directory_offline()

    def _take_offline(self, partition: Partition, directory: Directory) -> None:
        for topic in _list_names(partition.topic, partition.log.topic_id):
            self._partitions.pop((topic, partition.index), None)
            self._offline.add((topic, partition.index))
        refusal = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"log directory {directory.storage.path} is offline")
        self._close(partition, refusal)

    def _close(self, partition: Partition, refusal: KafkaError) -> None:
        if self.on_closing is not None:
            self.on_closing(partition)
        partition.close_to_clients(refusal)

    def move(self, topic: str, index: int, path: str) -> Deferred[None]:
        """Move a partition to the log directory at *path*; fires when the copy has begun.

        Raises KafkaError, or fails with it: INVALID_TOPIC_EXCEPTION for a name too long for a copy's folder,
        LOG_DIR_NOT_FOUND, KAFKA_STORAGE_ERROR, INVALID_REPLICA_ASSIGNMENT for a cordoned directory, and
        UNKNOWN_TOPIC_OR_PARTITION for a partition that does not exist yet: it will be created there.
        """
        if len(topic) > MAX_MOVED_NAME_LENGTH - len(str(index)):
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"the name of {topic} is too long for a copy's folder")
        target = self.directories.find_by_path(path)
        if target is None:
            raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is not in log.dirs")
        if target.offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"log directory {path} is offline")
        if self.directories.is_cordoned(target):
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"log directory {path} is in cordoned.log.dirs")
        if (topic, index) not in self._partitions and (topic, index) not in self._offline:
            self.directories.note_wish((topic, index), target)
        return self.moves.start(self.find(topic, index), target)

    # Following

    def truncate(self, partition: Partition, offset: int) -> Deferred[None]:
        """Truncate a partition as its follower; its move and its compaction, which may hold what goes, end first."""
        return self._stop_upkeep(partition).addCallback(lambda _: partition.follower.truncate(offset))

    def start_over_at(self, partition: Partition, offset: int) -> Deferred[None]:
        """Let a partition's log begin at *offset*, empty, as its follower; otherwise as `truncate`."""
        return self._stop_upkeep(partition).addCallback(lambda _: partition.follower.start_over_at(offset))

    def _stop_upkeep(self, partition: Partition) -> Deferred[None]:
        name = (partition.topic, partition.index)
        return self.moves.quiet(partition).addCallback(lambda _: self.moves.cancel(name))

    def high_watermarks(self, logs: Sequence[Log]) -> dict[PartitionName, int]:
        """Return the high watermarks of open logs, for the checkpoints of their directory."""
        partitions = (self._partitions[opened.topic, opened.partition] for opened in logs)
        return {(partition.topic, partition.index): partition.high_watermark.offset for partition in partitions}

    def logs_by_directory(self) -> list[tuple[Directory, list[Log]]]:
        """Return every log directory that is online, with the open logs in it."""
        logs: dict[Directory, list[Log]] = {directory: [] for directory in self.directories if not directory.offline}
        for partition in self:
            home = self.directories.find_home((partition.topic, partition.index))
            if home in logs:
                logs[home].append(partition.log)
        return list(logs.items())

    async def prepare_to_close(self) -> None:
        """Stop all moves and answer every waiting append, so that the directories can be closed.

        The next start removes files that were to be removed later. Closing a directory syncs its new partitions.
        """
        self._new.stop()
        await self.moves.stop()
        while any(partition.holds_appends for partition in self):
            await gatherResults([directory.disk.run(do_nothing) for directory in self.directories])
        await gatherResults([directory.commit.finish() for directory in self.directories])
        for directory in self.directories:
            directory.closing = True

    def abandon(self) -> None:
        """Begin nothing any more and report no failure: the logs are closed without notice."""
        self._new.stop()
        for directory in self.directories:
            directory.closing = True

    def wake_fetches(self) -> None:
        """Let every waiting fetch return what it can read now."""
        for partition in self:
            partition.wake_fetches()

    # Deleting records

    def delete_records(self, partition: Partition, offset: int) -> Deferred[int]:
        """Delete the records before *offset* (-1: the high watermark); fires with the log start offset.

        Raises KafkaError OFFSET_OUT_OF_RANGE beyond the high watermark and POLICY_VIOLATION for a topic that is only
        compacted.
        """
        end_offset = partition.high_watermark.offset
        start_offset = end_offset if offset == -1 else offset
        if "delete" not in partition.log.config.cleanup_policy:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, f"cleanup.policy of {partition.topic} has no delete")
        if not 0 <= start_offset <= end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{start_offset} is not between 0 and {end_offset}")
        partition.log.trimmer.advance_log_start_offset(start_offset)
        directory = self.directories.find_home((partition.topic, partition.index))
        assert directory is not None
        saving = partition.disk.run(directory.storage.save_log_start_offset, partition.log)
        return saving.addCallbacks(
            lambda _: partition.log.log_start_offset, lambda failure: self._not_saved(directory, failure.value)
        )

    def _not_saved(self, directory: Directory, problem: BaseException | None) -> NoReturn:
        if not isinstance(problem, OSError):
            raise problem or AssertionError
        if not is_transient(problem):
            self.take_directory_offline(directory, problem)
        reason = f"the new log start offset could not be written to {directory.storage.path}: {describe_error(problem)}"
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason)


def _list_names(topic: str, topic_id: bytes) -> Iterator[str | bytes]:
    """Yield by what a topic is found: its name, and its id unless it has none. Many topics may have none."""
    yield topic
    if topic_id != ZERO_UUID:
        yield topic_id
