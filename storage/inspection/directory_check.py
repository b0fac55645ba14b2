"""Checking log directories, or the folders of single partitions."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from kafkacompat.storage.directory.checkpoints import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
)
from kafkacompat.storage.directory.claim import LOCK_FILE
from kafkacompat.storage.directory.log_directory import CLEAN_SHUTDOWN_FILE
from kafkacompat.storage.directory.meta_properties import FILE_NAME as META_PROPERTIES
from kafkacompat.storage.directory.meta_properties import LogDirectoryError, read_meta_properties
from kafkacompat.storage.directory.partition_folders import (
    DELETE_SUFFIX,
    FUTURE_SUFFIX,
    STRAY_SUFFIX,
    parse_folder_name,
)
from kafkacompat.storage.files.checkpoints import CorruptCheckpointError, read_offsets
from kafkacompat.storage.files.filesystem import DirectoryLockedError, Files
from kafkacompat.storage.inspection.findings import Finding, ReportFinding, ReportProgress, UnreadablePath
from kafkacompat.storage.inspection.partition_check import CheckedPartition, PartitionCircumstances, check_partition
from kafkacompat.storage.log.partition_metadata import read_partition_metadata
from kafkacompat.storage.segment.segment_files import LOG_SUFFIX, list_segment_bases
from kafkacompat.storage.segment.walk import LARGEST_OFFSET
from kafkacompat.wire.primitives import ZERO_UUID

CHECKPOINTS = (RECOVERY_POINTS, LOG_START_OFFSETS, HIGH_WATERMARKS, CLEANER_OFFSETS)

_RENAMED_FOLDERS = {
    DELETE_SUFFIX: "the folder of a deleted partition; the next start removes it",
    FUTURE_SUFFIX: "an incomplete copy; the next start removes it, or sets it aside if it is the only one of its partition",
    STRAY_SUFFIX: "the folder of a partition without a topic; inspect it, then remove it",
}


class CheckTarget(NamedTuple):
    """The folders of partitions to check, in the log directory `path` or, if that is None, by themselves."""

    path: str | None
    folders: Sequence[str]

    @property
    def directory(self) -> str:
        """The log directory; for a single partition's folder, its parent."""
        return self.path if self.path is not None else os.path.dirname(os.path.abspath(self.folders[0]))


def find_check_target(files: Files, path: str) -> CheckTarget:
    """Tell whether a path is a log directory or a partition's folder. Raises NotADirectoryError if neither, and OSError."""
    path = path.rstrip("/") or path
    if list_segment_bases(files, path):
        return CheckTarget(None, [_resolve_folder(files, path)])
    folders = [
        folder
        for name in files.list(path)
        if parse_folder_name(name) is not None and files.is_directory(folder := os.path.join(path, name))
    ]
    if not folders and not files.exists(os.path.join(path, META_PROPERTIES)):
        raise NotADirectoryError(f"{path} is neither a log directory nor a partition's folder")
    return CheckTarget(path, folders)


def _resolve_folder(files: Files, folder: str) -> str:
    """Resolve a link to a partition's folder, unless it lies in a log directory: a broker may hold the target's."""
    is_there = files.exists(os.path.join(os.path.dirname(os.path.abspath(folder)), LOCK_FILE))
    return folder if is_there else os.path.realpath(folder)


def count_log_bytes(files: Files, place: CheckTarget) -> int:
    """Return the bytes of all log files, for the progress; files that a broker deletes meanwhile do not count."""
    return sum(_log_bytes(files, folder) for folder in place.folders)


def _log_bytes(files: Files, folder: str) -> int:
    size_bytes = 0
    with suppress(FileNotFoundError):
        names = [name for name in files.list(folder) if name.endswith(LOG_SUFFIX)]
        for name in names:
            with suppress(FileNotFoundError):
                size_bytes += files.size(os.path.join(folder, name))
    return size_bytes


def is_held_by_broker(files: Files, path: str) -> bool:
    """Return whether a broker holds a log directory, by taking its lock for a moment."""
    lock = os.path.join(path, LOCK_FILE)
    if not files.exists(lock):
        return False
    try:
        files.lock(lock).release()
    except (DirectoryLockedError, OSError):
        return True  # unknown counts as held: the traces of a running broker are no damage
    return False


class DirectoryState(NamedTuple):
    """The state of a log directory by its own files; `live`: a broker holds it, `clean`: it was shut down cleanly."""

    live: bool
    clean: bool
    checkpoints: Mapping[str, Mapping[tuple[str, int], int]]

    def circumstances_of(self, folder: str) -> PartitionCircumstances:
        """Return the circumstances of a partition."""
        name = parse_folder_name(os.path.basename(folder))
        assert name is not None, f"{folder} is no folder of a partition"
        synced_to = LARGEST_OFFSET if self.clean else self.checkpoints[RECOVERY_POINTS].get(name, 0)
        return PartitionCircumstances(
            synced_to,
            self.checkpoints[LOG_START_OFFSETS].get(name, 0),
            self.checkpoints[HIGH_WATERMARKS].get(name, 0),
            name in self.checkpoints[CLEANER_OFFSETS],
            self.live,
        )


def read_directory_state(files: Files, path: str, report: ReportFinding, live: bool) -> DirectoryState:
    """Read the files of the log directory itself, and report their faults."""
    checkpoints = {}
    for name in CHECKPOINTS:
        try:
            checkpoints[name] = read_offsets(files, os.path.join(path, name))
        except CorruptCheckpointError as error:
            checkpoints[name] = {}
            report(Finding(os.path.join(path, name), f"{error}; a start ignores the file and reads more"))
    try:
        read_meta_properties(files, path)
    except LogDirectoryError as error:
        report(Finding(os.path.join(path, META_PROPERTIES), str(error)))
    return DirectoryState(live, not live and files.exists(os.path.join(path, CLEAN_SHUTDOWN_FILE)), checkpoints)


def check_target(
    files: Files,
    place: CheckTarget,
    report: ReportFinding,
    progress: ReportProgress,
    unreadable: Callable[[UnreadablePath], None],
    live: bool | None = None,
) -> list[CheckedPartition]:
    """Check a log directory or a partition's folder, reporting unreadable files and continuing with the others.

    `live` says whether a broker runs; None finds out.
    """
    if live is None:
        live = is_held_by_broker(files, place.directory)
    state = read_directory_state(files, place.path, report, live) if place.path is not None else None
    checked = []
    for folder in place.folders:
        circumstances = (
            state.circumstances_of(folder) if state is not None else _circumstances_of_single(files, folder, live)
        )
        try:
            checked.append(check_partition(files, folder, circumstances, report, progress))
        except OSError as error:
            if not (circumstances.live and not files.exists(folder)):
                unreadable(UnreadablePath(folder, error))
    if place.path is not None:
        _report_folders(files, place.path, report)
        _report_topic_ids(files, place.folders, report)
    return checked


def _circumstances_of_single(files: Files, folder: str, live: bool) -> PartitionCircumstances:
    """Return the circumstances of a single folder.

    Its last segment may be torn. A checkpoint beside the folder may say that the log was compacted.
    """
    parent, name = os.path.split(os.path.abspath(folder))
    try:
        compacted = parse_folder_name(name) in read_offsets(files, os.path.join(parent, CLEANER_OFFSETS))
    except CorruptCheckpointError:
        compacted = True  # unknown: it may be
    return PartitionCircumstances(synced_to=list_segment_bases(files, folder)[-1], compacted=compacted, live=live)


def _report_folders(files: Files, path: str, report: ReportFinding) -> None:
    for name in files.list(path):
        ending = next((ending for ending in _RENAMED_FOLDERS if name.endswith(ending)), None)
        if ending is not None and files.is_directory(os.path.join(path, name)):
            report(Finding(os.path.join(path, name), _RENAMED_FOLDERS[ending], note=True))
        if parse_folder_name(name) is not None and files.target(os.path.join(path, name)) is None:
            report(Finding(os.path.join(path, name), "a link that leads nowhere; a broker does not start"))


def _report_topic_ids(files: Files, folders: Sequence[str], report: ReportFinding) -> None:
    """Report partitions whose topic id differs from another partition's of the topic."""
    ids: dict[str, tuple[bytes, str]] = {}
    for folder in folders:
        topic = os.path.basename(folder).rpartition("-")[0]
        try:
            topic_id = read_partition_metadata(files, folder)
        except (CorruptCheckpointError, OSError):
            continue
        first, where = ids.setdefault(topic, (topic_id, folder))
        if ZERO_UUID != topic_id != first != ZERO_UUID:
            report(Finding(folder, f"its topic has another id than in {where}"))
