"""Surveying a partition's folder without the cluster's metadata. Everything here is a disk operation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.log.leader_epochs import LeaderEpochs
from kafkacompat.storage.producers.producer import Producer
from kafkacompat.storage.producers.snapshots import CorruptSnapshotError, Snapshots
from kafkacompat.storage.segment.header_scan import scan_headers
from kafkacompat.storage.segment.segment_files import list_segment_bases, log_file_path
from kafkacompat.wire.record_batch import MAGIC_V2

FIRST_MADE_UP_ID = 1 << 62
"""Producer ids from here on come from a client, not from a broker, and leave too few ids after them."""


class PartitionSurvey(NamedTuple):
    """The newest leader epoch and the largest producer id in the files; -1 without one.

    Producer ids that a client made up do not count.
    """

    leader_epoch: int
    producer_id: int


def survey_partition(files: Files, folder: str, *, clean_shutdown: bool) -> PartitionSurvey | None:
    """Survey a partition's folder; None if it has no log.

    After a crash, or without a readable leader epoch checkpoint, the last segment is read too: it may have newer epochs
    and producers than the checkpoint and the snapshots.
    """
    bases = list_segment_bases(files, folder)
    if not bases:
        return None
    epoch = LeaderEpochs.load(files, folder).latest
    snapshots = _readable_snapshots(Snapshots(files, folder))
    producer_id = _find_largest_id(producer.producer_id for producers in snapshots for producer in producers)
    from_files = PartitionSurvey(epoch, producer_id)
    return (
        from_files
        if clean_shutdown and epoch >= 0
        else _with_batches(files, log_file_path(folder, bases[-1]), from_files)
    )


def _with_batches(files: Files, path: str, from_files: PartitionSurvey) -> PartitionSurvey:
    epoch, producer_id = from_files
    file = files.open(path)
    try:
        for _, header in scan_headers(file, 0, file.size()):
            if header.magic == MAGIC_V2:
                epoch = max(epoch, header.partition_leader_epoch)
                producer_id = _find_largest_id((producer_id, header.producer_id))
    finally:
        file.close()
    return PartitionSurvey(epoch, producer_id)


def _readable_snapshots(snapshots: Snapshots) -> Iterator[list[Producer]]:
    for offset in snapshots.offsets():
        with suppress(CorruptSnapshotError):
            yield snapshots.read(offset)


def _find_largest_id(producer_ids: Iterable[int]) -> int:
    return max((producer_id for producer_id in producer_ids if producer_id < FIRST_MADE_UP_ID), default=-1)
