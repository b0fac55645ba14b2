"""Compaction: of each key only the last record stays.

`compact` reads a log's sealed segments and writes what is to take their place; it looks at every record, so it runs in a
worker process, over files. `cleanable` tells, without reading anything, what of a log is to be compacted.

Rules: KIP-58 (lag), KIP-354 (longest lag), KIP-534 (tombstones), KIP-98 (transactions, producers).
"""

from kafkacompat.storage.compaction.checked_batches import CorruptBatchError
from kafkacompat.storage.compaction.cleanable import Cleanable, cleanable
from kafkacompat.storage.compaction.cleaner import Step, compact
from kafkacompat.storage.compaction.job import CleanedSegment, CleaningJob, CleaningResult, Progress

__all__ = [
    "Cleanable",
    "CleanedSegment",
    "CleaningJob",
    "CleaningResult",
    "CorruptBatchError",
    "Progress",
    "Step",
    "cleanable",
    "compact",
]
