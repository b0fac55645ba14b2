"""The log of Kafka's controllers in a log directory: `__cluster_metadata-0`, with its snapshots. It is only read.

A snapshot, `<end offset>-<epoch>.checkpoint`, holds record batches that stand for the whole log before its end
offset, with a control batch before and behind them. Everything here is a disk operation.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from kafkacompat.storage.filesystem import Files
from kafkacompat.storage.meta_properties import LogDirectoryError
from kafkacompat.storage.partition_folders import log_path, segment_bases
from kafkacompat.storage.sound_batches import LegacyFormatError, sound_batches
from kafkacompat.wire.primitives import MalformedError
from kafkacompat.wire.record_batch import BatchHeader, read_records

FOLDER = "__cluster_metadata-0"

_SNAPSHOT = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")


def cluster_metadata_values(files: Files, directory: str) -> Iterator[bytes]:
    """The values of all records in a log directory's cluster metadata, those of the newest snapshot first.

    Nothing comes of a directory without. Raises LogDirectoryError when records are missing or cannot be read.
    """
    folder = os.path.join(directory, FOLDER)
    if not files.is_directory(folder):
        return
    try:
        end_offset, name = _newest_snapshot(files, folder)
        if name:
            yield from _values(files, os.path.join(folder, name), 0, 0)
        bases = segment_bases(files, folder)
        if bases and bases[0] > end_offset:
            raise MalformedError(f"the records from {end_offset} to {bases[0]} are missing")
        for base, following in zip(bases, [*bases[1:], None], strict=True):
            if following is None or following > end_offset:
                yield from _values(files, log_path(folder, base), base, end_offset)
    except (MalformedError, LegacyFormatError) as problem:
        advice = "restore it, or move it away to start without what it says of topics and configurations"
        raise LogDirectoryError(f"{folder} cannot be read ({problem}); {advice}") from problem


def _newest_snapshot(files: Files, folder: str) -> tuple[int, str]:
    """(end offset, file name); (0, "") when there is none."""
    matches = (_SNAPSHOT.fullmatch(name) for name in files.list(folder))
    return max(((int(match[1]), match[0]) for match in matches if match), default=(0, ""))


def _values(files: Files, path: str, base_offset: int, start_offset: int) -> Iterator[bytes]:
    """The values of a file's records from an offset on; what a crash left behind the last whole batch is passed over."""
    file = files.open(path)
    try:
        position = 0
        for header in sound_batches(file, file.size(), base_offset):
            if not header.is_control and header.last_offset >= start_offset:
                yield from _batch_values(file.pread(header.size_bytes, position), header, start_offset)
            position += header.size_bytes
    finally:
        file.close()


def _batch_values(batch: bytes, header: BatchHeader, start_offset: int) -> Iterator[bytes]:
    for record in read_records(batch):
        if record.offset >= start_offset and record.value is not None:
            yield record.value
