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
from kafkacompat.metadata.znodes.consumers import decode_consumer_offset, encode_consumer_offset, format_offset_path
from kafkacompat.metadata.znodes.paths import Znode
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
            format_offset_path(group_id, offset.topic, offset.partition): encode_consumer_offset(offset.offset)
            for offset, code in zip(offsets, codes, strict=True)
            if not code
        }
        written = self._run_in_turn(lambda: self._write(wanted))
        return written.addCallbacks(
            lambda _: codes, lambda failure: [code or _as_code(failure.value) for code in codes]
        )

    async def _write(self, wanted: Mapping[str, bytes]) -> None:
        for _ in range(MAX_ATTEMPTS):
            stored = await self._store.read(list(wanted))
            room = await self._count_free_offsets()
            if len(wanted.keys() - stored.keys()) > room:
                raise StoreError(f"version 0 of OffsetCommit has stored {MAX_OFFSETS} offsets, the maximum")
            if await self._change(_list_changes(stored, wanted)):
                return
        raise StoreError(_CHANGED_TOO_FAST)

    async def _count_free_offsets(self) -> int:
        if self._count is None:
            self._count = len(_list_topics(await self._store.keys(OFFSETS_FOLDER)))
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
        return Deferred.fromCoroutine(self._fetch(group_id, partitions))

    async def _fetch(
        self, group_id: str, partitions: Iterable[tuple[str, int]]
    ) -> Mapping[tuple[str, int], int] | ErrorCode:
        keys = {format_offset_path(group_id, *partition): partition for partition in partitions}
        try:
            stored = await self._store.read(list(keys))
            return {keys[key]: decode_consumer_offset(key, entry.value) for key, entry in stored.items()}
        except Exception as problem:
            return _as_code(problem)

    def delete_offsets_of_topic(self, topic: str) -> Deferred[None]:
        """Delete the offsets of a topic that was deleted."""
        removed = self._run_in_turn(lambda: self._remove(topic))
        return removed.addErrback(
            lambda failure: log.error("Failed to delete the offsets of topic %s: %s", topic, failure.value)
        )

    async def _remove(self, topic: str) -> None:
        for _ in range(MAX_ATTEMPTS):
            topics = _list_topics(await self._store.keys(OFFSETS_FOLDER))
            keys = [key for key, topic_of_key in topics.items() if topic_of_key == topic]
            stored = await self._store.read(keys)
            if await self._change([StoreChange(key, entry.version, None) for key, entry in stored.items()]):
                return
        raise StoreError(_CHANGED_TOO_FAST)

    def _run_in_turn(self, step: Callable[[], Coroutine[Deferred[Any], Any, Result]]) -> Deferred[Result]:
        return self._lock.run(lambda: Deferred.fromCoroutine(step()))


def _list_topics(keys: Iterable[str]) -> dict[str, str]:
    """Return the topic of each key of an offset; consumers up to 0.8.1 also keep other keys beside them."""
    matches = ((key, Znode.CONSUMER_OFFSET.match(key)) for key in keys)
    return {key: names["topic"] for key, names in matches if names is not None}


def _list_changes(stored: Mapping[str, StoreEntry], wanted: Mapping[str, bytes]) -> list[StoreChange]:
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
