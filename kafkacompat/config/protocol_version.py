"""The protocol that brokers speak among themselves: inter.broker.protocol.version."""

from __future__ import annotations

import re

from kafkacompat.wire.releases import RELEASES, Release, find_release

OLDEST = "2.8"
"""The oldest protocol among brokers: from then on LeaderAndIsr and UpdateMetadata carry topic ids."""

_VERSION = re.compile(r"(\d+\.\d+)(?:\.\d+)?(?:-IV\d+)?")


def find_protocol_release(text: str) -> Release | None:
    """Return the release of a version such as 3.9, 3.9.1 or 2.8-IV1; None if it is unknown or older than OLDEST."""
    match = _VERSION.fullmatch(text.strip())
    if match is None or match[1] not in RELEASES:
        return None
    return find_release(match[1]) if _parse_numbers(match[1]) >= _parse_numbers(OLDEST) else None


def _parse_numbers(name: str) -> tuple[int, ...]:
    return tuple(map(int, name.split(".")))


def find_version_cap(release: Release, api_key: int) -> int | None:
    """Return the newest version of an API that the release's brokers know; None where the table does not have the API.

    The table has no requests of ZooKeeper's controllers for releases from 3.3 on, whose versions are ours.
    """
    versions = release.versions.get(api_key)
    return None if versions is None else versions.last
