"""Recovering leader epochs that their file lost in a crash. Everything here is a disk operation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.log.leader_epochs import EpochEntry, LeaderEpochs
from kafkacompat.storage.segment.header_scan import DamagedError, scan_headers
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.wire.record_batch import BatchHeader


def recover_lost_epochs(
    files: Files, directory: str, epochs: LeaderEpochs, segments: Iterable[Segment], start_offset: int
) -> LeaderEpochs:
    """Return the epochs from `start_offset` on, adding those before the first known one from the batches.

    They are missing after a crash during a deletion of records: the file forgot their epochs, but the records remain.
    """
    known = epochs.entries
    if not known or known[0].start_offset <= start_offset:
        return epochs
    recovered: list[EpochEntry] = []
    for header in _scan_segments(segments, known[0].start_offset):
        epoch = header.partition_leader_epoch
        if header.last_offset >= start_offset and (recovered[-1].epoch if recovered else -1) < epoch <= known[0].epoch:
            recovered.append(EpochEntry(epoch, header.base_offset))
    return LeaderEpochs(files, directory, [*recovered, *known])


def _scan_segments(segments: Iterable[Segment], end_offset: int) -> Iterator[BatchHeader]:
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
            continue  # the epochs after the damage in this segment are unknown
        finally:
            file.release()
