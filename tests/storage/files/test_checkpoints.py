"""Checkpoint files and partition.metadata."""

from __future__ import annotations

import pytest

from kafkacompat.storage.files.checkpoints import (
    CorruptCheckpointError,
    read_offsets,
    replace_file,
    write_offsets,
)
from kafkacompat.storage.log.partition_metadata import (
    read_partition_metadata,
    write_partition_metadata,
)
from kafkacompat.wire.primitives import ZERO_UUID
from tests.fakes.memory_files import MemoryFiles
from tests.storage.support import TOPIC_ID, Store


def test_offsets_are_kafkas_lines(store: Store) -> None:
    offsets = {("a-b", 0): 5, ("t", 11): 2**40}
    write_offsets(store.files, store.path("c"), offsets)
    assert store.files.read(store.path("c")) == b"0\n2\na-b 0 5\nt 11 1099511627776\n"
    assert read_offsets(store.files, store.path("c")) == offsets
    assert read_offsets(store.files, store.path("absent")) == {}


@pytest.mark.parametrize("text", ["1\n0\n", "0\n1\n", "0\nx\n", "0\n1\na 0\n", "0\n1\na b 5\n", "0\n1\na 0 5\nb 0 5\n"])
def test_damage_is_noticed(store: Store, text: str) -> None:
    replace_file(store.files, store.path("c"), text.encode())
    with pytest.raises(CorruptCheckpointError):
        read_offsets(store.files, store.path("c"))


def test_an_empty_file_holds_nothing_as_in_kafka(store: Store) -> None:
    replace_file(store.files, store.path("c"), b"")
    assert read_offsets(store.files, store.path("c")) == {}


@pytest.mark.parametrize("operation", ["open", "append", "sync", "sync_directory"])
def test_a_replacement_that_fails_leaves_the_old_contents(memory: Store, operation: str) -> None:
    files = memory.files
    assert isinstance(files, MemoryFiles)
    replace_file(files, memory.path("c"), b"old")
    files.fail_on(operation, 5, after_bytes=1)
    with pytest.raises(OSError, match=r"\S"):
        replace_file(files, memory.path("c"), b"new")
    files.crash()
    assert files.read(memory.path("c")) == b"old"


def test_a_leftover_of_an_earlier_attempt_is_of_no_account(store: Store) -> None:
    file = store.files.open(store.path("c.tmp"), create=True)
    file.append((b"much longer than the new contents",), 33)
    file.close()
    replace_file(store.files, store.path("c"), b"new")
    assert store.files.read(store.path("c")) == b"new"
    assert store.files.list(store.root) == ["c"]


def test_a_replacement_survives_a_crash(memory: Store) -> None:
    files = memory.files
    assert isinstance(files, MemoryFiles)
    replace_file(files, memory.path("c"), b"new")
    files.crash(tear_last_write=0)
    assert files.read(memory.path("c")) == b"new"


def test_partition_metadata_names_the_topic(store: Store) -> None:
    assert read_partition_metadata(store.files, store.root) == ZERO_UUID
    write_partition_metadata(store.files, store.root, TOPIC_ID)
    assert store.files.read(store.path("partition.metadata")) == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert read_partition_metadata(store.files, store.root) == TOPIC_ID


@pytest.mark.parametrize(
    "text", [b"", b"version: 0\n", b"version: 0\ntopic_id: AAAA\n", b"version: 0\ntopic_id: \xff\n"]
)
def test_damaged_partition_metadata_is_noticed(store: Store, text: bytes) -> None:
    replace_file(store.files, store.path("partition.metadata"), text)
    with pytest.raises(CorruptCheckpointError):
        read_partition_metadata(store.files, store.root)
