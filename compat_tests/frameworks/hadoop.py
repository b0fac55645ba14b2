"""HDFS of one name node and one data node."""

from __future__ import annotations

import urllib.request
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

ANSWER_SECONDS = 60


class Hdfs(NamedTuple):
    """The URI of a name node, the URL below which its files can be read, and the local folder of its data node."""

    uri: str
    http: str
    folder: Path

    def count_blocks(self) -> int:
        """Return the number of blocks; every file that is not empty has at least one."""
        return sum(1 for path in self.folder.rglob("finalized/**/blk_*") if path.suffix != ".meta")

    def read(self, path: str) -> bytes:
        """Return the contents of a file, given by its path or its URI; raises HTTPError."""
        url = self.http + urlsplit(path).path
        with urllib.request.urlopen(url, timeout=ANSWER_SECONDS) as answer:
            contents: bytes = answer.read()
        return contents
