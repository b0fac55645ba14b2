"""A partition that is moved between two directories, as its tests see it."""

from __future__ import annotations

from collections.abc import Mapping

from twisted.internet.defer import Deferred

from kafkacompat.metadata.image import TopicImage
from kafkacompat.partitions.directories import Directories
from kafkacompat.partitions.discovery import find_partitions
from kafkacompat.partitions.partition import Partition
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.wire.record_batch import read_header
from tests.fakes.memory_files import MemoryFiles
from tests.kafkacompat.metadata.deferreds import outcome
from tests.kafkacompat.partitions.node import Node, topic

SMALL = LogConfig(segment_bytes=1000)
T = topic()


def two(files: MemoryFiles | None = None, config: LogConfig = SMALL) -> tuple[Node, Partition]:
    """A node with t-0 in /a, and /b for it to go to."""
    node = Node("/a", "/b", files=files, config=config)
    node.open(T)
    return node, node.replicas.find("t", 0)


def restarted(node: Node) -> tuple[Node, Partition]:
    """The next process over the same files, as a broker starts it."""
    after = Node("/a", "/b", files=node.files, config=node.config)
    find(after, {"t": T})
    after.open(T)
    return after, after.replicas.find("t", 0)


def find(node: Node, topics: Mapping[str, TopicImage]) -> None:
    """Let a node that has just begun find where partitions are, as a broker does."""
    for directory in node.directories:
        directory.partitions.clear()
    directories = Directories(node.directories)
    node.replicas.directories = directories
    node.moves._directories = directories
    finding = Deferred.fromCoroutine(find_partitions(directories, topics))
    node.work()
    outcome(finding)


def offsets(partition: Partition) -> list[int]:
    """The base offsets of all batches, read as consumers do."""
    base_offsets, offset = [], partition.log.log_start_offset
    while (region := partition.log.read(offset, 1, partition.high_watermark)) is not None:
        header = read_header(region.pread(0, region.size_bytes))
        region.release()
        base_offsets.append(header.base_offset)
        offset = header.last_offset + 1
    return base_offsets


def step(node: Node) -> bool:
    """Let each disk do one thing; False when nothing waits."""
    waiting = [disk for disk in node.disks if disk.waiting]
    for disk in waiting:
        disk.waiting.popleft()()
    return bool(waiting)


def move(node: Node, path: str = "/b") -> None:
    outcome_of = node.replicas.move("t", 0, path)
    node.work()
    outcome(outcome_of)


def home(node: Node) -> str:
    directory = node.replicas.directories.find_home(("t", 0))
    assert directory is not None
    return directory.path


def folders(node: Node, path: str) -> list[str]:
    """Partition folders, with what is random in their names cut out."""
    names = [name for name in node.names(path) if name.startswith("t-0")]
    return sorted(f"{name[:3]}-{name.rpartition('-')[2]}" if "." in name else name for name in names)
