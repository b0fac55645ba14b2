"""What a partition's folder says by itself, without the metadata that goes with it. Everything here is a disk operation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.log.leader_epochs import LeaderEpochs
from kafkacompat.storage.producers.producer import Producer
from kafkacompat.storage.producers.snapshots import CorruptSnapshotError, Snapshots
from kafkacompat.storage.segment.lookup import scan_headers
from kafkacompat.storage.segment.segment_files import log_path, segment_bases
from kafkacompat.wire.record_batch import MAGIC_V2

MADE_UP = 1 << 62
"""Producer ids from here on were given by no broker: a client has made them up, and behind them there is no room for more."""


class PartitionSurvey(NamedTuple):
    """The newest leader epoch and the largest producer id that the files name; -1 where they name none.

    Producer ids that a client has made up do not count.
    """

    leader_epoch: int
    producer_id: int


def survey(files: Files, folder: str, *, clean_shutdown: bool) -> PartitionSurvey | None:
    """Look at a partition's folder; None when it holds no log at all.

    Without a clean shutdown, or a checkpoint of leader epochs that can be read, the last segment may know of what that
    and the producers' snapshots do not say.
    """
    bases = segment_bases(files, folder)
    if not bases:
        return None
    epoch = LeaderEpochs.load(files, folder).latest
    snapshots = _readable_snapshots(Snapshots(files, folder))
    producer_id = _largest(producer.producer_id for producers in snapshots for producer in producers)
    said = PartitionSurvey(epoch, producer_id)
    return said if clean_shutdown and epoch >= 0 else _with_batches(files, log_path(folder, bases[-1]), said)


def _with_batches(files: Files, path: str, said: PartitionSurvey) -> PartitionSurvey:
    epoch, producer_id = said
    file = files.open(path)
    try:
        for _, header in scan_headers(file, 0, file.size()):
            if header.magic == MAGIC_V2:
                epoch = max(epoch, header.partition_leader_epoch)
                producer_id = _largest((producer_id, header.producer_id))
    finally:
        file.close()
    return PartitionSurvey(epoch, producer_id)


def _readable_snapshots(snapshots: Snapshots) -> Iterator[list[Producer]]:
    for offset in snapshots.offsets():
        with suppress(CorruptSnapshotError):
            yield snapshots.read(offset)


def _largest(producer_ids: Iterable[int]) -> int:
    return max((each for each in producer_ids if each < MADE_UP), default=-1)
