"""Every partition of a broker over a file system in memory, whose disks work when a test says so."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kafkacompat.metadata.image import PartitionImage, TopicImage
from kafkacompat.partitions.directories import Directories, Directory
from kafkacompat.partitions.partition import Partition
from kafkacompat.partitions.partition_appender import Appended
from kafkacompat.partitions.replica_manager import ReplicaManager
from kafkacompat.storage.directory.log_directory import LogDirectory
from kafkacompat.storage.log.log import AppendResult
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.timers import now_ms, run_few_at_a_time
from kafkacompat.upkeep.moving import PartitionMoves
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.record_batch import build_batch
from tests.fakes.disk import ManualDisk
from tests.fakes.memory_files import MemoryFiles

START_S = 1_700_000_000
EPOCH = 3


def topic(name: str = "t", partitions: int = 1, topic_id: bytes = b"t" * 16) -> TopicImage:
    """A topic that node 1 leads."""
    led = (PartitionImage(number, 1, EPOCH, (1,), (1,), 0) for number in range(partitions))
    return TopicImage(name, topic_id, tuple(led))


class Node:
    """Node 1 with a log directory at each path; `configs` are the topics' own, `config` is that of the others."""

    def __init__(
        self,
        *paths: str,
        files: MemoryFiles | None = None,
        config: LogConfig | None = None,
        syncs_always: bool = False,
        reserve_bytes: int = 0,
    ) -> None:
        self.files = files or MemoryFiles()
        self.clock = Clock()
        self.clock.advance(START_S)
        self.config = config or LogConfig()
        self.configs: dict[str, LogConfig] = {}
        self.disks = [ManualDisk() for _ in paths or ("/a",)]
        self.directories = [
            Directory(self._take(path), disk, self.clock, syncs_always=syncs_always, reserve_bytes=reserve_bytes)
            for path, disk in zip(paths or ("/a",), self.disks, strict=True)
        ]
        directories = Directories(self.directories)
        for directory in self.directories:
            for stored in directory.storage.list_partitions():
                directories.note_partition((stored.topic, stored.partition), directory)
        self.moves = PartitionMoves(directories, self.clock)
        self.replicas = ReplicaManager(
            directories, lambda name: self.configs.get(name, self.config), self.clock, self.moves
        )

    def _take(self, path: str) -> LogDirectory:
        return LogDirectory.open(self.files, path, node_id=1, cluster_id="C", new_directory_id=b"d" * 16)

    @property
    def now_ms(self) -> int:
        return now_ms(self.clock)

    def work(self) -> None:
        """Let every disk do what waits, until nothing does."""
        while any(disk.waiting for disk in self.disks):
            for disk in self.disks:
                disk.work()

    def sync(self) -> None:
        """Let the reactor have its next turn, in which a group commit begins, and every disk do what waits."""
        self.clock.advance(0)
        self.work()

    def open(self, image: TopicImage) -> None:
        """Open a topic, and have new partitions on the disk; what is left open of it is in `replicas`."""
        self.make(image)
        self.put_on_disk()

    def make(self, image: TopicImage) -> None:
        """Open a topic; new partitions are not on the disk yet."""
        done: list[object] = []
        self.replicas.open_partitions(image).addCallback(done.append)
        self.work()
        assert done == [None]

    def put_on_disk(self) -> None:
        """Let new partitions have the disk now, for which they wait a while: no time passes."""
        calls: Sequence[Any] = self.clock.getDelayedCalls()
        for call in calls:
            if call.func is run_few_at_a_time:
                arguments, named = call.args, call.kw
                call.cancel()
                run_few_at_a_time(*arguments, **named)
        self.work()

    def restart(self, image: TopicImage) -> Node:
        """Stop in good order; returns the next process, with a topic opened."""
        self.work()
        for directory, logs in self.replicas.logs_by_directory():
            directory.storage.close(logs)
        after = self.next_process()
        after.open(image)
        return after

    def next_process(self) -> Node:
        """The next process over the same files; no topic is open."""
        paths = [directory.storage.path for directory in self.directories]
        always = self.directories[0].commit.always
        return Node(*paths, files=self.files, config=self.config, syncs_always=always)

    def append(self, partition: Partition, size_bytes: int = 100) -> AppendResult:
        """Append a batch of one record now; the disk may have to make a segment first."""
        results: list[AppendResult] = []
        appended: Appended = partition.append(self.batch(size_bytes), self.now_ms)
        if isinstance(appended, Deferred):
            appended.addCallback(results.append)
            self.sync()
        else:
            results.append(appended)
        return results[0]

    def batch(self, size_bytes: int = 100) -> bytes:
        """A batch of one record of now."""
        return build_batch([(self.now_ms, b"k", b"v" * size_bytes, [])])

    def names(self, *path: str) -> list[str]:
        """What is in a folder."""
        return self.files.list(os.path.join("/", *path))


def code_of(replicas: ReplicaManager, name: str | bytes, index: int) -> ErrorCode:
    """Return the code of the error when a partition is not found."""
    with pytest.raises(KafkaError) as caught:
        replicas.find(name, index)
    return caught.value.code


def names_of(replicas: ReplicaManager) -> list[tuple[str, int]]:
    """Return the names of all partitions, in order."""
    return sorted((partition.topic, partition.index) for partition in replicas)
