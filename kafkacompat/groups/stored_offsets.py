"""Offsets of the first OffsetCommit and OffsetFetch (version 0), which belong to no group coordinator.

They are kept where Kafka up to 3.9 keeps them with ZooKeeper: in the metadata store, one key for each partition,

    /consumers/<group>/offsets/<topic>/<partition>      the offset in decimal

so whoever commits by version 0 reads by version 0, and neither sees what was committed by later versions. Nobody
asks for a list of them, so they are not held in memory. They go with their topic, and there is an upper bound.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

from twisted.internet.defer import Deferred, DeferredLock

from kafkacompat.groups.commits import OffsetToCommit, check_metadata
from kafkacompat.metadata.store import ABSENT, OFFSETS_FOLDER, Change, ConflictError, Entry, MetadataStore, StoreError
from kafkacompat.wire.errors import ErrorCode

log = logging.getLogger(__name__)

MAX_OFFSETS = 100_000
MAX_ATTEMPTS = 10
_CHANGED_TOO_FAST = "offsets are changed faster than they can be read"

Result = TypeVar("Result")


class StoredOffsets:
    """Reads and writes the offsets of version 0. Its Deferreds do not fail.

    ``metadata_max_length`` is Kafka's ``offset.metadata.max.bytes``: metadata is checked and thrown away.
    """

    def __init__(self, store: MetadataStore, metadata_max_length: int) -> None:
        self._store = store
        self._metadata_max_length = metadata_max_length
        self._lock = DeferredLock()
        self._count: int | None = None

    def commit(self, group_id: str, offsets: Sequence[OffsetToCommit]) -> Deferred[list[ErrorCode]]:
        """Store offsets, all those of a request by one write; fires with one code each once they are durable."""
        codes = [check_metadata(each.metadata, self._metadata_max_length) for each in offsets]
        wanted = {
            _key(group_id, each.topic, each.partition): b"%d" % each.offset
            for each, code in zip(offsets, codes, strict=True)
            if not code
        }
        written = self._in_turn(lambda: self._write(wanted))
        return written.addCallbacks(lambda _: codes, lambda failure: [code or _told(failure.value) for code in codes])

    async def _write(self, wanted: Mapping[str, bytes]) -> None:
        for _ in range(MAX_ATTEMPTS):
            stored = await self._store.read(list(wanted))
            room = await self._room()
            if len(wanted.keys() - stored.keys()) > room:
                raise StoreError(f"{MAX_OFFSETS} offsets are stored by version 0 of OffsetCommit, and there is no room")
            if await self._change(_changes(stored, wanted)):
                return
        raise StoreError(_CHANGED_TOO_FAST)

    async def _room(self) -> int:
        if self._count is None:
            self._count = len(await self._store.keys(OFFSETS_FOLDER))
        return MAX_OFFSETS - self._count

    async def _change(self, changes: Sequence[Change]) -> bool:
        """Make changes, if there are any; False when somebody else made others."""
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
        """Read a group's offsets; fires with those that there are, or with a code when they cannot be read."""
        keys = {_key(group_id, *each): each for each in partitions}
        reading = self._store.read(list(keys))
        return reading.addCallbacks(
            lambda stored: {keys[key]: int(entry.value) for key, entry in stored.items()},
            lambda failure: _told(failure.value),
        )

    def topic_deleted(self, topic: str) -> Deferred[None]:
        """Forget the offsets of a topic that is gone."""
        removed = self._in_turn(lambda: self._remove(topic))
        return removed.addErrback(
            lambda failure: log.error("the offsets of %s are not deleted: %s", topic, failure.value)
        )

    async def _remove(self, topic: str) -> None:
        for _ in range(MAX_ATTEMPTS):
            doomed = [key for key in await self._store.keys(OFFSETS_FOLDER) if _topic_of(key) == topic]
            stored = await self._store.read(doomed)
            if await self._change([Change(key, entry.version, None) for key, entry in stored.items()]):
                return
        raise StoreError(_CHANGED_TOO_FAST)

    def _in_turn(self, step: Callable[[], Coroutine[Deferred[Any], Any, Result]]) -> Deferred[Result]:
        return self._lock.run(lambda: Deferred.fromCoroutine(step()))


def _key(group_id: str, topic: str, partition: int) -> str:
    """The name of a topic is its own, that of a group may hold anything."""
    return f"{OFFSETS_FOLDER}{quote(group_id, safe='')}/offsets/{topic}/{partition}"


def _topic_of(key: str) -> str:
    """Neither a group, quoted, nor a topic has a slash."""
    return key.split("/")[4]


def _changes(stored: Mapping[str, Entry], wanted: Mapping[str, bytes]) -> list[Change]:
    """What is stored already as it shall be is left alone."""
    found = {key: stored.get(key, Entry(b"", ABSENT)) for key in wanted}
    return [Change(key, found[key].version, value) for key, value in wanted.items() if found[key].value != value]


def _told(problem: BaseException) -> ErrorCode:
    """Version 0 knows no better code than the one Kafka has for whatever goes wrong in ZooKeeper."""
    log.error(
        "offsets in the metadata store: %s", problem, exc_info=None if isinstance(problem, StoreError) else problem
    )
    return ErrorCode.UNKNOWN_SERVER_ERROR
