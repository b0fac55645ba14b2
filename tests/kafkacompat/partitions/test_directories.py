"""Where partitions live."""

from __future__ import annotations

import pytest

from kafkacompat.partitions.directories import Directories
from kafkacompat.storage.directory.log_directory import LogDirectoryError
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.fakes.memory_files import MemoryFiles
from tests.kafkacompat.partitions.node import Node, topic
from tests.kafkacompat.upkeep.moves import find


def test_a_new_partition_goes_where_fewest_are() -> None:
    first, second = Node("/a", "/b").directories
    directories = Directories([first, second])
    directories.note_partition(("old", 0), first)
    assert directories.choose_directory(("t", 0)) is second
    assert directories.choose_directory(("t", 1)) is first
    assert [directories.find_home(("t", index)) for index in range(3)] == [second, first, None]
    assert (first.partitions, second.partitions) == ({("old", 0), ("t", 1)}, {("t", 0)})


def test_a_forgotten_partition_counts_no_more() -> None:
    first, second = Node("/a", "/b").directories
    directories = Directories([first, second])
    for index in range(2):
        directories.choose_directory(("t", index))
    directories.forget(("t", 1))
    directories.forget(("never", 0))
    assert directories.find_home(("t", 1)) is None
    assert directories.choose_directory(("u", 0)) is second


def test_offline_directories_get_nothing_new() -> None:
    first, second = Node("/a", "/b").directories
    directories = Directories([first, second])
    first.offline = True
    assert [directories.choose_directory(("t", index)) for index in range(2)] == [second, second]
    second.offline = True
    with pytest.raises(KafkaError) as caught:
        directories.choose_directory(("t", 2))
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert directories.find_home(("t", 2)) is None


def test_cordoned_directories_get_something_only_when_all_are() -> None:
    first, second = Node("/a", "/b").directories
    cordoned = {"/a"}
    directories = Directories([first, second], lambda: cordoned)
    assert [directories.choose_directory(("t", index)) for index in range(3)] == [second] * 3
    cordoned.add("/b")
    assert directories.choose_directory(("t", 3)) is first
    cordoned.clear()
    assert directories.choose_directory(("t", 4)) is first


def test_one_folder_in_two_directories_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    files = MemoryFiles()
    for path in ("/a/t-0", "/b/t-0"):
        files.make_directory(path)
    node = Node("/a", "/b", files=files)
    monkeypatch.setattr(files, "target", lambda path: "/elsewhere")
    with pytest.raises(LogDirectoryError, match="/b/t-0 and /a/t-0 are one folder: remove the link"):
        find(node, {"t": topic()})
    assert node.names("b") == node.names("a") == [".lock", "meta.properties", "t-0"]
