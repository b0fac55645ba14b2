"""File regions over real files, and whether they were let go of."""

from __future__ import annotations

from pathlib import Path

from kafkacompat.storage.files.operating_system import OsFiles
from kafkacompat.storage.segment.shared_files import FileRegion, SegmentFile


def log_file(path: Path, content: bytes) -> SegmentFile:
    path.write_bytes(content)
    return SegmentFile(OsFiles().open(str(path)))


def make_region(file: SegmentFile, position: int, size_bytes: int) -> FileRegion:
    assert file.acquire()
    return FileRegion(file, position, size_bytes)


def is_closed(file: SegmentFile) -> bool:
    """Whether nobody uses the file once the segment itself has let go; to be asked once."""
    file.release()
    return not file.acquire()
