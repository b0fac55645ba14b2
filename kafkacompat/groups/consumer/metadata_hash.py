"""What stands for the topics of a group: when it changes, the group's epoch does.

Kafka hashes the same things by XXH3; whoever takes a log over from the other sees each group's epoch grow by one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from hashlib import blake2b

from kafkacompat.metadata.image import MetadataImage

_COUNT = struct.Struct(">i")


def metadata_hash(topics: Iterable[str], image: MetadataImage) -> int:
    """A signed number of 64 bits for ids, names and partition counts of those *topics* that there are; 0 for none."""
    there = [image.topics[name] for name in sorted(topics) if name in image.topics]
    if not there:
        return 0
    digest = blake2b(digest_size=8)
    for topic in there:
        name = topic.name.encode()
        digest.update(b"".join((topic.topic_id, _COUNT.pack(len(name)), name, _COUNT.pack(len(topic.partitions)))))
    return int.from_bytes(digest.digest(), "big", signed=True)
