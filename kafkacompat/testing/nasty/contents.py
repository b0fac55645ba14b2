"""The records that nasty topics hold: small, and each known by its number."""

from __future__ import annotations

from collections.abc import Iterable

from kafkacompat.wire.record_batch import NewRecord

SPREAD_KEYS = 10


def make_records(
    numbers: Iterable[int], timestamp: int, *, word: str = "value", size_bytes: int = 0, key: str | None = None
) -> list[NewRecord]:
    """Return one record for each number, a millisecond apart; values of at least *size_bytes*."""
    return [
        (
            timestamp + number,
            (f"key-{number % SPREAD_KEYS}" if key is None else key).encode(),
            f"{word}-{number}".ljust(size_bytes, ".").encode(),
            [],
        )
        for number in numbers
    ]


def make_keyed(keys: Iterable[int], timestamp: int, word: str) -> list[NewRecord]:
    """Return one record for each key, with a value that names the key."""
    return [(timestamp, f"key-{key}".encode(), f"{word}-{key}".encode(), []) for key in keys]
