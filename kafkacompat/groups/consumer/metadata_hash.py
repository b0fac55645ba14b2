"""The hash of the topics of a group. When it changes, the group's epoch grows.

Kafka hashes the same data with XXH3. So when a log moves from Kafka to this broker or back, each group's epoch grows by one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from hashlib import blake2b

from kafkacompat.metadata.image import MetadataImage

_COUNT = struct.Struct(">i")


def compute_metadata_hash(topics: Iterable[str], image: MetadataImage) -> int:
    """Return a signed 64-bit hash of the ids, names and partition counts of the *topics* that exist; 0 if none does."""
    existing = [image.topics[name] for name in sorted(topics) if name in image.topics]
    if not existing:
        return 0
    digest = blake2b(digest_size=8)
    for topic in existing:
        name = topic.name.encode()
        digest.update(b"".join((topic.topic_id, _COUNT.pack(len(name)), name, _COUNT.pack(len(topic.partitions)))))
    return int.from_bytes(digest.digest(), "big", signed=True)
