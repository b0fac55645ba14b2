"""Helpers of the storage tests: batches, and logs that roll when needed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from kafkacompat.storage.directory.log_directory import LogDirectory, LogDirectoryError
from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.log.log import AppendResult, Log, RollNeededError
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.producers.transaction_marker import Marker
from kafkacompat.wire.primitives import Buffer
from kafkacompat.wire.record_batch import BatchHeader, build_batch, read_header, split_batches

NOW_MS = 1_700_000_000_000
TOPIC_ID = bytes(range(16))
DIRECTORY_ID = bytes(range(100, 116))


class Store(NamedTuple):
    """A file system and a folder in it."""

    files: Files
    root: str

    def path(self, *names: str) -> str:
        """Return a path in the folder."""
        return os.path.join(self.root, *names)


def make_batch(
    count: int = 1, *, size_bytes: int = 10, timestamp: int = NOW_MS, key: bytes | None = b"k", **kw: Any
) -> bytes:
    """Build a batch of `count` records a millisecond apart, with values of `size_bytes`."""
    return build_batch([(timestamp + index, key, b"v" * size_bytes, []) for index in range(count)], **kw)


def create_log(store: Store, **config: Any) -> Log:
    """Create a log."""
    return Log.create(store.files, store.path("t-0"), "t", 0, TOPIC_ID, LogConfig(**config))


def reopen_log(
    store: Store,
    *,
    clean: bool = False,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    cleaner_offset: int | None = None,
    high_watermark: int | None = None,
    **config: Any,
) -> Log:
    """Open the log again, as after a crash unless `clean`."""
    return Log.open(
        store.files,
        store.path("t-0"),
        "t",
        0,
        TOPIC_ID,
        LogConfig(**config),
        clean_shutdown=clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        cleaner_offset=cleaner_offset,
        high_watermark=high_watermark,
        now_ms=NOW_MS,
    )


def append_batch(
    log: Log, records: Buffer, *, now_ms: int = NOW_MS, leader_epoch: int = 0, from_client: bool = True
) -> AppendResult:
    """Append a batch, after a roll if need be."""
    try:
        return log.append(records, leader_epoch=leader_epoch, now_ms=now_ms, from_client=from_client)
    except RollNeededError:
        roll_log(log)
        return log.append(records, leader_epoch=leader_epoch, now_ms=now_ms, from_client=from_client)


def append_marker(log: Log, marker: Marker, *, now_ms: int = NOW_MS, leader_epoch: int = 0) -> AppendResult:
    """Append a marker, after a roll if need be."""
    try:
        return log.append_marker(marker, leader_epoch=leader_epoch, now_ms=now_ms)
    except RollNeededError:
        roll_log(log)
        return log.append_marker(marker, leader_epoch=leader_epoch, now_ms=now_ms)


def roll_log(log: Log) -> None:
    """Start a new segment and seal the old one."""
    log.maintenance.seal(log.maintenance.roll(log.maintenance.prepare_segment(log.log_end_offset)))


def read_log(log: Log, offset: int, max_bytes: int = 1 << 20, **kw: Any) -> bytes:
    """Return the bytes that a fetch would send."""
    region = log.read(offset, max_bytes, **kw)
    if region is None:
        return b""
    data = region.pread(0, region.size_bytes)
    region.release()
    return data


def read_headers(data: bytes) -> list[BatchHeader]:
    """Return the headers of the whole batches in `data`."""
    return [read_header(batch) for batch in split_batches(data)]


def stored_headers(log: Log, offset: int | None = None) -> Iterator[BatchHeader]:
    """Yield the header of every batch from an offset on, read fetch by fetch."""
    offset = log.log_start_offset if offset is None else offset
    while offset < log.log_end_offset:
        headers = read_headers(read_log(log, offset))
        assert headers, f"nothing to read at {offset} of {log!r}"
        yield from headers
        offset = headers[-1].last_offset + 1


def fill_log(log: Log, count: int, **kw: Any) -> None:
    """Append `count` batches of one record."""
    for index in range(count):
        append_batch(log, make_batch(timestamp=NOW_MS + index, **kw))


def name_file(base_offset: int, suffix: str) -> str:
    """Return the name of a file of the log, relative to the store's folder."""
    return f"t-0/{base_offset:020d}{suffix}"


def rewrite_file(store: Store, file_name: str, change: Callable[[bytes], bytes]) -> None:
    """Replace the contents of a file, created if absent."""
    file = store.files.open(store.path(file_name), create=True)
    data = change(file.pread(file.size(), 0))
    file.truncate(0)
    file.append((data,), len(data))
    file.close()


def read_contents(store: Store) -> dict[str, bytes]:
    """Return the contents of every file of the log."""
    return {name: store.files.read(store.path("t-0", name)) for name in store.files.list(store.path("t-0"))}


def list_offsets(log: Log) -> list[int]:
    """Return the base offset of every batch."""
    return [header.base_offset for header in stored_headers(log)]


def take_directory(store: Store, **kw: Any) -> LogDirectory:
    """Take a log directory in the store's folder, for node 1 of cluster C."""
    arguments = {"node_id": 1, "cluster_id": "C", "new_directory_id": DIRECTORY_ID, **kw}
    return LogDirectory.open(store.files, store.path("data"), **arguments)


def catch_refusal(store: Store, **kw: Any) -> str:
    """Return the error of opening a log directory."""
    with pytest.raises(LogDirectoryError) as refused:
        take_directory(store, **kw)
    return str(refused.value)
