"""The file with the usage of the present hour, in the first log directory that works."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred, succeed

from kafkacompat.storage.files.checkpoints import replace_file

if TYPE_CHECKING:
    from kafkacompat.partitions.directories import Directories, Directory
    from kafkacompat.storage.files.filesystem import Files

FILE_NAME = "instance-usage.json"


class DirectoryStateFile:
    """Implements `StateFile`. If the directory fails, the next one has the file from then on."""

    def __init__(self, files: Files, directories: Directories) -> None:
        self._files = files
        self._directories = directories

    def _find_directory(self) -> Directory | None:
        return next((directory for directory in self._directories if not directory.offline), None)

    def read(self) -> Deferred[bytes | None]:
        """See StateFile."""
        directory = self._find_directory()
        if directory is None:
            return succeed(None)
        return directory.disk.run(_read, self._files, os.path.join(directory.storage.path, FILE_NAME))

    def write(self, data: bytes) -> Deferred[None]:
        """See StateFile."""
        directory = self._find_directory()
        if directory is None:
            return succeed(None)
        return directory.disk.run(replace_file, self._files, os.path.join(directory.storage.path, FILE_NAME), data)


def _read(files: Files, path: str) -> bytes | None:
    return files.read(path) if files.exists(path) else None
