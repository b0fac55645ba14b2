"""Compaction, which keeps the last record of each key.

`compact` reads a log's sealed segments and writes the segments that replace them. It reads every record, so it runs in a
worker process. `cleanable` chooses the segments from memory, without reading a file.

Rules: KIP-58 (lag), KIP-354 (longest lag), KIP-534 (tombstones), KIP-98 (transactions, producers).
"""

from kafkacompat.storage.compaction.checked_batches import CorruptBatchError
from kafkacompat.storage.compaction.cleanable import CleanableRange, find_cleanable
from kafkacompat.storage.compaction.cleaner import CleaningStep, compact
from kafkacompat.storage.compaction.job import CleanedSegment, CleaningJob, CleaningProgress, CleaningResult

__all__ = [
    "CleanableRange",
    "CleanedSegment",
    "CleaningJob",
    "CleaningProgress",
    "CleaningResult",
    "CleaningStep",
    "CorruptBatchError",
    "compact",
    "find_cleanable",
]
