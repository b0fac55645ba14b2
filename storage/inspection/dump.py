"""Dumping the files of a data directory; the name decides the format."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from kafkacompat.storage.files.checkpoints import TEMPORARY_SUFFIX
from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.inspection.index_rows import (
    IndexedLog,
    offset_index_rows,
    time_index_rows,
    transaction_index_rows,
)
from kafkacompat.storage.inspection.log_rows import log_rows
from kafkacompat.storage.inspection.rows import DumpOptions, DumpRow, make_problem_row
from kafkacompat.storage.inspection.small_file_rows import checkpoint_rows, property_rows, snapshot_rows
from kafkacompat.storage.producers.snapshots import SNAPSHOT_SUFFIX
from kafkacompat.storage.segment.index_files import INDEX_SUFFIX, TIME_INDEX_SUFFIX
from kafkacompat.storage.segment.segment_files import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    REMOVED_SUFFIX,
    SWAP_SUFFIX,
    TXN_INDEX_SUFFIX,
    log_file_path,
)

METADATA_SNAPSHOT_SUFFIX = ".checkpoint"
CHECKPOINT_ENDING = "-checkpoint"
_RENAMED = "|".join(map(re.escape, (DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX, TEMPORARY_SUFFIX)))
_ENDINGS = re.compile(rf"({_RENAMED}|(\.[0-9]+)*{re.escape(REMOVED_SUFFIX)})+$")
"""Endings of files that a log does not use any more, or not yet; cut-off files also have the position of the cut."""

_Dump: TypeAlias = "Callable[[Files, str, DumpOptions], Iterator[DumpRow]]"


def dump_file(files: Files, path: str, options: DumpOptions) -> Iterator[DumpRow] | None:
    """Return the rows of a file; None if its kind is unknown. Raises OSError."""
    dump_file = _dump_of(os.path.basename(path))
    return dump_file(files, path, options) if dump_file is not None else None


def list_known_files(files: Files, path: str, above: frozenset[str] = frozenset()) -> list[str]:
    """Return the files to dump in a directory, then those of its folders; `path` itself if it is a file.

    Links to a directory `above`, which contains them, are skipped.
    """
    if not files.is_directory(path):
        return [path]
    above |= {os.path.realpath(path)}
    entries = [os.path.join(path, name) for name in files.list(path)]
    folders = [entry for entry in entries if files.is_directory(entry)]
    known = [entry for entry in entries if entry not in folders and _dump_of(os.path.basename(entry)) is not None]
    further = [folder for folder in folders if os.path.realpath(folder) not in above]
    return known + [file for folder in further for file in list_known_files(files, folder, above)]


def _dump_of(name: str) -> _Dump | None:
    name = _without_endings(name)
    named = _BY_NAME.get(name)
    if named is not None or name.endswith(CHECKPOINT_ENDING):
        return named or _dump_checkpoint
    return _BY_SUFFIX.get(os.path.splitext(name)[1]) if name.split(".")[0].split("-")[0].isdigit() else None


def _without_endings(path: str) -> str:
    return _ENDINGS.sub("", path)


def parse_base_offset(path: str) -> int:
    """Return the offset in the name of a segment's file or a metadata snapshot."""
    return int(os.path.basename(path).split(".")[0].split("-")[0])


def _dump_log(files: Files, path: str, options: DumpOptions) -> Iterator[DumpRow]:
    return _dump_batches(files, path, parse_base_offset(path), options)


def _metadata_snapshot(files: Files, path: str, options: DumpOptions) -> Iterator[DumpRow]:
    """Dump a metadata snapshot, whose offsets start at 0, unlike its name."""
    return _dump_batches(files, path, 0, options)


def _dump_batches(files: Files, path: str, base_offset: int, options: DumpOptions) -> Iterator[DumpRow]:
    file = files.open(path)
    try:
        yield from log_rows(file, file.size(), base_offset, options)
    finally:
        file.close()


def _offset_index(files: Files, path: str, options: DumpOptions) -> Iterator[DumpRow]:
    return _dump_index(offset_index_rows, files, path, options)


def _time_index(files: Files, path: str, options: DumpOptions) -> Iterator[DumpRow]:
    return _dump_index(time_index_rows, files, path, options)


_IndexRows: TypeAlias = "Callable[[bytes, int, IndexedLog | None, DumpOptions], Iterator[DumpRow]]"


def _dump_index(rows: _IndexRows, files: Files, path: str, options: DumpOptions) -> Iterator[DumpRow]:
    base_offset = parse_base_offset(path)
    # A renamed index belongs to the log file with the same ending.
    log_file = log_file_path(os.path.dirname(path), base_offset) + path.removeprefix(_without_endings(path))
    if not files.exists(log_file):
        yield make_problem_row(f"{log_file} does not exist, so the entries cannot be compared with it")
        yield from rows(files.read(path), base_offset, None, options)
        return
    data = files.read(path)
    file = files.open(log_file)
    try:
        yield from rows(data, base_offset, IndexedLog(file, file.size(), base_offset), options)
    finally:
        file.close()


_BY_SUFFIX: dict[str, _Dump] = {
    LOG_SUFFIX: _dump_log,
    METADATA_SNAPSHOT_SUFFIX: _metadata_snapshot,
    INDEX_SUFFIX: _offset_index,
    TIME_INDEX_SUFFIX: _time_index,
    TXN_INDEX_SUFFIX: lambda files, path, _: transaction_index_rows(files.read(path)),
    SNAPSHOT_SUFFIX: lambda files, path, _: snapshot_rows(files.read(path)),
}
_BY_NAME: dict[str, _Dump] = {
    "meta.properties": lambda files, path, _: property_rows(files.read(path), "="),
    "partition.metadata": lambda files, path, _: property_rows(files.read(path), ":"),
}


def _dump_checkpoint(files: Files, path: str, options: DumpOptions) -> Iterator[DumpRow]:
    return checkpoint_rows(files.read(path))
