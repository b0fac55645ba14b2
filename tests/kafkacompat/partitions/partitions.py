"""A partition over a real log in a temporary folder, whose disk works when a test says so."""

from __future__ import annotations

from pathlib import Path

from twisted.internet.task import Clock

from kafkacompat.partitions.free_space import FreeSpace
from kafkacompat.partitions.group_commit import GroupCommit
from kafkacompat.partitions.partition import Partition
from kafkacompat.storage.files.filesystem import DiskUsage
from kafkacompat.storage.files.operating_system import OsFiles
from kafkacompat.storage.log.log import AppendResult, Log
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.wire.record_batch import build_batch
from tests.fakes.disk import ManualDisk

NOW_MS = 1_700_000_000_000
TOPIC_ID = b"t" * 16


def batch(value: bytes = b"v" * 100, count: int = 1) -> bytes:
    return build_batch([(NOW_MS, b"k", value, [])] * count)


class World:
    def __init__(self, folder: Path, config: LogConfig | None = None, *, topic: str = "t", index: int = 0) -> None:
        self.disk = ManualDisk()
        self.clock = Clock()
        self.failures: list[BaseException] = []
        self.saved: list[tuple[int, int]] = []
        self.commit = GroupCommit(self.disk, self.clock, self.report_failure)
        self.space = FreeSpace(str(folder), lambda: self.disk.run(DiskUsage, 1 << 40, 1 << 40))
        log = Log.create(OsFiles(), str(folder / f"{topic}-{index}"), topic, index, TOPIC_ID, config or LogConfig())
        self.partition = Partition(log, self, 3)

    def report_failure(self, problem: BaseException) -> None:
        """What the partition's log directory is told."""
        self.failures.append(problem)

    def save_truncation(self, opened: Log, high_watermark: int) -> None:
        """What is written before the log is appended to again."""
        self.saved.append((opened.log_end_offset, high_watermark))

    def work(self) -> None:
        """Do what waits, in the reactor's next turns and on the disk."""
        self.clock.advance(0)
        self.disk.work()

    def append(self, content: bytes | None = None) -> AppendResult:
        result = self.partition.append(content or batch(), NOW_MS)
        assert isinstance(result, AppendResult)
        return result
