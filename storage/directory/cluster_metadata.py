"""Reading the log of Kafka's controllers in a log directory: `__cluster_metadata-0`, with its snapshots.

A snapshot, `<end offset>-<epoch>.checkpoint`, has record batches that replace the log before its end offset, between
two control batches. Everything here is a disk operation.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from kafkacompat.storage.directory.meta_properties import LogDirectoryError
from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.segment.segment_files import list_segment_bases, log_file_path
from kafkacompat.storage.segment.walk import Bounds, walk_log_file
from kafkacompat.wire.primitives import MalformedError
from kafkacompat.wire.record_batch import Record, read_records

CLUSTER_METADATA_FOLDER = "__cluster_metadata-0"

_SNAPSHOT_FOOTER = b"\0\0\0\4"
"""The key of the control record that ends a snapshot: version 0, type 4."""

_SNAPSHOT = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")


def read_cluster_metadata(files: Files, directory: str) -> Iterator[bytes]:
    """Yield the values of all records in a log directory's cluster metadata, those of the newest snapshot first.

    A directory without cluster metadata yields nothing. A torn end of the log is ignored. Raises LogDirectoryError if
    anything else is missing or cannot be read: with part of the metadata, topics would seem deleted, and records older
    than their configs allow.
    """
    folder = os.path.join(directory, CLUSTER_METADATA_FOLDER)
    if not files.is_directory(folder):
        return
    try:
        end_offset, name = _newest_snapshot(files, folder)
        if name:
            yield from _read_snapshot(files, os.path.join(folder, name))
        bases = list_segment_bases(files, folder)
        if bases and bases[0] > end_offset:
            raise MalformedError(f"the records from {end_offset} to {bases[0]} are missing")
        for base, following in zip(bases, [*bases[1:], None], strict=False):
            if following is None or following > end_offset:
                yield from _read_segment(files, log_file_path(folder, base), base, following, end_offset)
    except MalformedError as problem:
        advice = "restore it, or move it away to start without its topics and configurations"
        raise LogDirectoryError(f"{folder} cannot be read ({problem}); {advice}") from problem


def _newest_snapshot(files: Files, folder: str) -> tuple[int, str]:
    """Return (end offset, file name); (0, "") without a snapshot."""
    matches = (_SNAPSHOT.fullmatch(name) for name in files.list(folder))
    return max(((int(match[1]), match[0]) for match in matches if match), default=(0, ""))


def _read_snapshot(files: Files, path: str) -> Iterator[bytes]:
    is_whole = False
    for is_control, record in _walk_records(files, path, 0):
        is_whole = is_control and record.key == _SNAPSHOT_FOOTER
        if not is_control and record.value is not None:
            yield record.value
    if not is_whole:
        raise MalformedError(f"{os.path.basename(path)} is not whole")


def _read_segment(
    files: Files, path: str, base_offset: int, following: int | None, start_offset: int
) -> Iterator[bytes]:
    """Yield the values from `start_offset` on; `following` is the base offset of the next segment, None without one."""
    end_offset = base_offset
    for is_control, record in _walk_records(files, path, base_offset):
        end_offset = record.offset + 1
        if not is_control and record.offset >= start_offset and record.value is not None:
            yield record.value
    if following not in (None, end_offset):
        raise MalformedError(f"the records from {end_offset} to {following} are missing")


def _walk_records(files: Files, path: str, next_offset: int) -> Iterator[tuple[bool, Record]]:
    """Yield a file's records up to a torn end, each with whether it is a control record."""
    file = files.open(path)
    try:
        size_bytes = file.size()
        for stretch in walk_log_file(file, Bounds(size_bytes), next_offset):
            if stretch.problem and stretch.end == size_bytes:
                return
            if stretch.header is None or stretch.problem or stretch.base_offset != next_offset:
                raise MalformedError(
                    f"byte {stretch.position} of {os.path.basename(path)} begins no batch of {next_offset}"
                )
            for record in read_records(file.pread(stretch.size_bytes, stretch.position)):
                yield stretch.header.is_control, record
            next_offset = stretch.last_offset + 1
    finally:
        file.close()
