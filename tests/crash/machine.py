"""A node with two log directories, started over whatever a file system holds, as a broker starts it."""

from __future__ import annotations

from dataclasses import replace

from kafkacompat.metadata.image import TopicImage
from kafkacompat.storage.log_config import LogConfig
from tests.crash.model import Topics
from tests.fakes.memory_files import MemoryFiles
from tests.kafkacompat.partitions.node import Node
from tests.kafkacompat.upkeep.moves import find

PATHS = ("/a", "/b")
CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=100, retention_bytes=2500)
COMPACTED = replace(
    CONFIG, cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.1, retention_bytes=-1, segment_bytes=900
)
COMPACTED_TOPIC = "compacted"


def start_node(files: MemoryFiles, topics: Topics, leader_epoch: int, *, syncs_always: bool) -> Node:
    """The next process: it leads every partition in a new epoch."""
    node = Node(*PATHS, files=files, config=CONFIG, syncs_always=syncs_always)
    node.configs[COMPACTED_TOPIC] = COMPACTED
    find(node, topics)
    for image in topics.values():
        node.make(set_leader(image, leader_epoch))
    return node


def set_leader(image: TopicImage, leader_epoch: int) -> TopicImage:
    """A topic whose partitions are led in an epoch."""
    return image._replace(
        partitions=tuple(partition._replace(leader_epoch=leader_epoch) for partition in image.partitions)
    )
