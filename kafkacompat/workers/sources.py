"""The code that worker processes import, as it lies on the disk.

An upgrade replaces it under a running broker. What it hands to a process and gets back belongs to the code that it has
itself, so a process with another one must not do anything for it.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path

import kafkacompat.storage
import kafkacompat.wire
import kafkacompat.workers

# What is no package of these is not imported there: see the layers.
PACKAGES = (kafkacompat.wire, kafkacompat.storage, kafkacompat.workers)


def fingerprint() -> bytes:
    """What tells any two states of it apart. Takes some milliseconds; raises OSError."""
    digest = blake2b()
    for package in PACKAGES:
        root = Path(package.__path__[0])
        for path in sorted(root.rglob("*.py")):
            digest.update(bytes(path.relative_to(root)) + b"\0")
            with suppress(FileNotFoundError):  # an upgrade that is under way
                digest.update(path.read_bytes())
    return digest.digest()


@cache
def first_fingerprint() -> bytes:
    """What it was when this was first called, which is to be when the broker starts."""
    return fingerprint()
