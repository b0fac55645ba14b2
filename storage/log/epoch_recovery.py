"""Finding leader epochs again that a crash took from their file. Everything here is a disk operation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.log.leader_epochs import EpochEntry, LeaderEpochs
from kafkacompat.storage.segment.lookup import DamagedError, scan_headers
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.wire.record_batch import BatchHeader


def with_lost_epochs(
    files: Files, directory: str, epochs: LeaderEpochs, segments: Iterable[Segment], start_offset: int
) -> LeaderEpochs:
    """The epochs from a log's beginning on, which may lie before the first one known.

    So it does where records were about to be deleted: the epochs forgot them, and then they were still there.
    """
    known = epochs.entries
    if not known or known[0].start_offset <= start_offset:
        return epochs
    found: list[EpochEntry] = []
    for header in _headers(segments, known[0].start_offset):
        epoch = header.partition_leader_epoch
        if header.last_offset >= start_offset and (found[-1].epoch if found else -1) < epoch <= known[0].epoch:
            found.append(EpochEntry(epoch, header.base_offset))
    return LeaderEpochs(files, directory, [*found, *known])


def _headers(segments: Iterable[Segment], end_offset: int) -> Iterator[BatchHeader]:
    for segment in segments:
        if segment.base_offset >= end_offset:
            return
        file = segment.pin()
        try:
            for _, header in scan_headers(file.file, 0, segment.size_bytes):
                if header.base_offset >= end_offset:
                    return
                yield header
        except DamagedError:
            continue  # what lies behind the damage in this segment cannot be told
        finally:
            file.release()
