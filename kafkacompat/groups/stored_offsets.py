"""Offsets of version 0 of OffsetCommit and OffsetFetch, which belong to no group coordinator.

The metadata store holds them, as ZooKeeper does for Kafka up to 3.9, with one key for each partition:

    /consumers/<group>/offsets/<topic>/<partition>      the offset in decimal

Version 0 reads the offsets that version 0 committed. It does not see those of later versions, nor do they see these. No request
lists these offsets, so they are not held in memory. They are deleted with their topic, and `MAX_OFFSETS` limits their number.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

from twisted.internet.defer import Deferred, DeferredLock

from kafkacompat.groups.commits import OffsetToCommit, check_offset_metadata
from kafkacompat.metadata.store import (
    ABSENT,
    OFFSETS_FOLDER,
    ConflictError,
    MetadataStore,
    StoreChange,
    StoreEntry,
    StoreError,
)
from kafkacompat.wire.errors import ErrorCode

log = logging.getLogger(__name__)

MAX_OFFSETS = 100_000
MAX_ATTEMPTS = 10
_CHANGED_TOO_FAST = "other requests keep changing the same offsets"

Result = TypeVar("Result")


class StoredOffsets:
    """Reads and writes the offsets of version 0. Its Deferreds do not fail.

    ``metadata_max_length`` is Kafka's ``offset.metadata.max.bytes``. The metadata is checked, but not stored.
    """

    def __init__(self, store: MetadataStore, metadata_max_length: int) -> None:
        self._store = store
        self._metadata_max_length = metadata_max_length
        self._lock = DeferredLock()
        self._count: int | None = None

    def commit(self, group_id: str, offsets: Sequence[OffsetToCommit]) -> Deferred[list[ErrorCode]]:
        """Store the offsets of a request by one write; fires with one code for each once they are durable."""
        codes = [check_offset_metadata(offset.metadata, self._metadata_max_length) for offset in offsets]
        wanted = {
            _key(group_id, offset.topic, offset.partition): b"%d" % offset.offset
            for offset, code in zip(offsets, codes, strict=True)
            if not code
        }
        written = self._in_turn(lambda: self._write(wanted))
        return written.addCallbacks(
            lambda _: codes, lambda failure: [code or _as_code(failure.value) for code in codes]
        )

    async def _write(self, wanted: Mapping[str, bytes]) -> None:
        for _ in range(MAX_ATTEMPTS):
            stored = await self._store.read(list(wanted))
            room = await self._free_offsets()
            if len(wanted.keys() - stored.keys()) > room:
                raise StoreError(f"version 0 of OffsetCommit has stored {MAX_OFFSETS} offsets, the maximum")
            if await self._change(_changes(stored, wanted)):
                return
        raise StoreError(_CHANGED_TOO_FAST)

    async def _free_offsets(self) -> int:
        if self._count is None:
            self._count = len(await self._store.keys(OFFSETS_FOLDER))
        return MAX_OFFSETS - self._count

    async def _change(self, changes: Sequence[StoreChange]) -> bool:
        """Apply changes, if there are any. Returns False if another request changed the same keys."""
        known, self._count = self._count, None
        if changes:
            try:
                await self._store.compare_and_set(changes)
            except ConflictError:
                return False
        if known is not None:
            self._count = known + sum(
                (change.expected_version == ABSENT) - (change.value is None) for change in changes
            )
        return True

    def fetch(
        self, group_id: str, partitions: Iterable[tuple[str, int]]
    ) -> Deferred[Mapping[tuple[str, int], int] | ErrorCode]:
        """Read a group's offsets; fires with the offsets that exist, or with a code if they cannot be read."""
        keys = {_key(group_id, *partition): partition for partition in partitions}
        reading = self._store.read(list(keys))
        return reading.addCallbacks(
            lambda stored: {keys[key]: int(entry.value) for key, entry in stored.items()},
            lambda failure: _as_code(failure.value),
        )

    def delete_offsets_of_topic(self, topic: str) -> Deferred[None]:
        """Delete the offsets of a topic that was deleted."""
        removed = self._in_turn(lambda: self._remove(topic))
        return removed.addErrback(
            lambda failure: log.error("Failed to delete the offsets of topic %s: %s", topic, failure.value)
        )

    async def _remove(self, topic: str) -> None:
        for _ in range(MAX_ATTEMPTS):
            keys = [key for key in await self._store.keys(OFFSETS_FOLDER) if _topic_of(key) == topic]
            stored = await self._store.read(keys)
            if await self._change([StoreChange(key, entry.version, None) for key, entry in stored.items()]):
                return
        raise StoreError(_CHANGED_TOO_FAST)

    def _in_turn(self, step: Callable[[], Coroutine[Deferred[Any], Any, Result]]) -> Deferred[Result]:
        return self._lock.run(lambda: Deferred.fromCoroutine(step()))


def _key(group_id: str, topic: str, partition: int) -> str:
    """Return the key of an offset. A group id may contain any character, so it is quoted; a topic name needs no quoting."""
    return f"{OFFSETS_FOLDER}{quote(group_id, safe='')}/offsets/{topic}/{partition}"


def _topic_of(key: str) -> str:
    """Return the topic of a key: neither a quoted group id nor a topic contains a slash."""
    return key.split("/")[4]


def _changes(stored: Mapping[str, StoreEntry], wanted: Mapping[str, bytes]) -> list[StoreChange]:
    """Return the changes that make the stored values the wanted ones."""
    entries = {key: stored.get(key, StoreEntry(b"", ABSENT)) for key in wanted}
    return [
        StoreChange(key, entries[key].version, value) for key, value in wanted.items() if entries[key].value != value
    ]


def _as_code(problem: BaseException) -> ErrorCode:
    """Return the code that Kafka has for every error of ZooKeeper; version 0 has no better one."""
    log.error(
        "Failed to read or write offsets in the metadata store: %s",
        problem,
        exc_info=None if isinstance(problem, StoreError) else problem,
    )
    return ErrorCode.UNKNOWN_SERVER_ERROR
