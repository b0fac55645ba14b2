"""Bounding the number of series: the first topics, groups or clients have series of their own, all others share one."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

OTHER = "(other)"
"""The label of everything that has no place of its own; no topic and no metric name may look like this."""


class SeriesPlaces(Generic[Key]):
    """At most ``limit`` keys that have a place. A key keeps its place while it exists, so that no counter starts over."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._placed: dict[Key, None] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._placed

    def take(self, key: Key) -> bool:
        """Give a key a place if there is one; return whether it has one."""
        if key not in self._placed:
            if len(self._placed) >= self._limit:
                return False
            self._placed[key] = None
        return True

    def keep(self, existing: Collection[Key]) -> None:
        """Free the places of all keys that no longer exist."""
        for key in [key for key in self._placed if key not in existing]:
            del self._placed[key]
