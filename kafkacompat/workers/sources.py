"""The files of the code that worker processes import.

An upgrade replaces them under a running broker. The broker and a worker exchange objects of their code, so a worker with other
code must not work for the broker.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path

import kafkacompat.storage
import kafkacompat.wire
import kafkacompat.workers

# The layers of imports keep other packages out of worker processes.
PACKAGES = (kafkacompat.wire, kafkacompat.storage, kafkacompat.workers)

CODE_SUFFIXES = (".py", ".pxd", ".so", ".pyd")


def fingerprint_sources() -> bytes:
    """Return a hash of all source files and compiled modules. Takes some milliseconds; raises OSError."""
    digest = blake2b()
    for package in PACKAGES:
        root = Path(package.__path__[0])
        for path in sorted(path for path in root.rglob("*") if path.suffix in CODE_SUFFIXES):
            digest.update(bytes(path.relative_to(root)) + b"\0")
            with suppress(FileNotFoundError):  # an upgrade is under way
                digest.update(path.read_bytes())
    return digest.digest()


@cache
def first_fingerprint() -> bytes:
    """Return the fingerprint of the first call, which the broker makes when it starts."""
    return fingerprint_sources()
