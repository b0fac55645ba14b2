"""The contract of metadata stores on those that need no server, and what SQLite adds to it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkacompat.metadata.sqlite_store import FILE_NAME, SqliteStore
from kafkacompat.metadata.store import ABSENT, StoreChange, StoreEntry, StoreError
from kafkacompat.metadata.zookeeper_store import ZooKeeperStore
from tests.fakes.disk import ImmediateDisk, ManualDisk
from tests.fakes.memory_store import MemoryStore
from tests.kafkacompat.metadata.deferreds import outcome
from tests.kafkacompat.metadata.store_contract import StoreContract, Subject
from tests.kafkacompat.zookeeper.memory_world import MemoryWorld


@pytest.fixture(params=["memory", "sqlite", "zookeeper"])
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Subject:
    makers: dict[str, Callable[[], Subject]] = {
        "memory": lambda: Subject(MemoryStore(), outcome),
        "sqlite": lambda: Subject(SqliteStore(str(tmp_path), ImmediateDisk()), outcome),
        "zookeeper": _make_zookeeper_store,
    }
    return makers[request.param]()


def _make_zookeeper_store() -> Subject:
    world = MemoryWorld()
    return Subject(ZooKeeperStore(world.connect("/kafka"), world.clock), world.run)


class TestContract(StoreContract):
    """The contract on the stores that need no server."""


def test_sqlite_finds_the_offsets_between_keys_with_similar_names(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path), ImmediateDisk())
    keys = ["/consumer", "/consumers/g/offsets/t/0", "/consumers/h", "/consumers0", "/z"]
    outcome(store.compare_and_set([StoreChange(key, ABSENT, b"1") for key in keys]))
    assert [*outcome(store.load())] == ["/consumer", "/consumers0", "/z"]
    assert [*outcome(store.keys("/consumers/"))] == ["/consumers/g/offsets/t/0", "/consumers/h"]


def test_sqlite_keeps_everything_when_it_is_opened_again(tmp_path: Path) -> None:
    first = SqliteStore(str(tmp_path), ImmediateDisk())
    outcome(first.compare_and_set([StoreChange("/a", ABSENT, b"\x00\xff")]))
    outcome(first.close())
    outcome(first.close())
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]
    assert outcome(SqliteStore(str(tmp_path), ImmediateDisk()).load()) == {"/a": StoreEntry(b"\x00\xff", 0)}


def test_sqlite_does_nothing_on_the_callers_thread(tmp_path: Path) -> None:
    disk = ManualDisk()
    loading = SqliteStore(str(tmp_path), disk).load()
    assert not loading.called and list(tmp_path.iterdir()) == []
    disk.work()
    assert outcome(loading) == {}


def test_sqlite_syncs_every_commit(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path), ImmediateDisk())
    outcome(store.load())
    connection = store._connection
    assert connection is not None
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_sqlite_is_held_by_one_store(tmp_path: Path) -> None:
    first = SqliteStore(str(tmp_path), ImmediateDisk())
    outcome(first.compare_and_set([StoreChange("/a", ABSENT, b"1")]))
    with pytest.raises(StoreError, match=r"cannot be used: database is locked"):
        outcome(SqliteStore(str(tmp_path), ImmediateDisk()).load())


def test_sqlite_refuses_a_newer_format(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        connection.execute("PRAGMA user_version = 2")
    connection.close()
    with pytest.raises(StoreError, match="a newer kafkacompat"):
        outcome(SqliteStore(str(tmp_path), ImmediateDisk()).load())


def test_sqlite_says_in_one_sentence_that_a_file_is_no_database(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"not a database, but long enough to be looked at" * 40)
    with pytest.raises(StoreError) as problem:
        outcome(SqliteStore(str(tmp_path), ImmediateDisk()).load())
    assert FILE_NAME in str(problem.value) and "\n" not in str(problem.value)


def test_sqlite_makes_its_directory_or_says_why_not(tmp_path: Path) -> None:
    assert outcome(SqliteStore(str(tmp_path / "a" / "b"), ImmediateDisk()).load()) == {}
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="a part of the path is a file, not a folder"):
        outcome(SqliteStore(str(tmp_path / "file" / "b"), ImmediateDisk()).load())


def test_a_sound_store_is_left_where_it_is(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path), ImmediateDisk())
    assert outcome(store.set_aside_if_damaged()) is None
    assert not store.path.exists()
    outcome(store.compare_and_set([StoreChange("/a", ABSENT, b"1")]))
    assert outcome(store.set_aside_if_damaged()) is None
    assert [*outcome(store.load())] == ["/a"]


@pytest.mark.parametrize("damage", ["no database", "pages"])
def test_a_damaged_store_is_set_aside(tmp_path: Path, damage: str) -> None:
    store = SqliteStore(str(tmp_path), ImmediateDisk())
    outcome(store.compare_and_set([StoreChange(f"/{index}", ABSENT, bytes(100)) for index in range(500)]))
    outcome(store.close())
    data = bytearray(store.path.read_bytes())
    data[0 if damage == "no database" else 8192 :] = b"\x55" * (len(data) - (0 if damage == "no database" else 8192))
    for number in (1, 2):
        store.path.write_bytes(data)
        name = outcome(store.set_aside_if_damaged())
        assert name == f"{store.path}.damaged-{number}"
        assert Path(name).read_bytes()[8192:] == data[8192:]
        assert outcome(store.load()) == {}
        outcome(store.close())


def test_a_store_in_use_is_not_taken_for_damaged(tmp_path: Path) -> None:
    first, second = (SqliteStore(str(tmp_path), ImmediateDisk()) for _ in range(2))
    outcome(first.compare_and_set([StoreChange("/a", ABSENT, b"1")]))
    with pytest.raises(StoreError, match="locked"):
        outcome(second.set_aside_if_damaged())


def test_only_the_owner_may_read_what_sqlite_writes(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "metadata"), ImmediateDisk())
    previous = os.umask(0)
    try:
        outcome(store.compare_and_set([StoreChange("/config/users/alice", ABSENT, b"secret")]))
    finally:
        os.umask(previous)
    files = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "metadata").iterdir()}
    assert files == {FILE_NAME: 0o600, f"{FILE_NAME}-wal": 0o600}
    outcome(store.close())
