"""DescribeLogDirs and AlterReplicaLogDirs."""

from __future__ import annotations

import pytest

from kafkacompat.partitions.directories import Directory, PartitionName
from kafkacompat.wire.apis.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from kafkacompat.wire.apis.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from kafkacompat.wire.errors import ErrorCode
from tests.handlers.data_node import DataNode, make_batch
from tests.kafkacompat.partitions.node import topic

TERABYTE = 1 << 40


@pytest.fixture
def node() -> DataNode:
    return DataNode(paths=("/a", "/b"))


def describe(node: DataNode, version: int = 5, **wanted: list[int]) -> DescribeLogDirsResponse:
    topics = [DescribableLogDirTopic(topic=name, partitions=partitions) for name, partitions in wanted.items()]
    return node.ask(DescribeLogDirsRequest(topics=topics or None), DescribeLogDirsResponse, version)


def find_partitions(node: DataNode, **wanted: list[int]) -> dict[tuple[str, int], tuple[str, DescribeLogDirsPartition]]:
    """Where each partition is; copies count under -1 - index."""
    return {
        (entry.name, -1 - part.partition_index if part.is_future_key else part.partition_index): (result.log_dir, part)
        for result in describe(node, 5, **wanted).results
        for entry in result.topics
        for part in entry.partitions
    }


def alter(node: DataNode, *moves: tuple[str, str, int], version: int = 2) -> dict[tuple[str, int], int]:
    dirs = [
        AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=name, partitions=[index])])
        for path, name, index in moves
    ]
    answer = node.ask(AlterReplicaLogDirsRequest(dirs=dirs), AlterReplicaLogDirsResponse, version)
    return {
        (entry.topic_name, part.partition_index): part.error_code
        for entry in answer.results
        for part in entry.partitions
    }


@pytest.mark.parametrize("version", range(6))
def test_directories_are_described(node: DataNode, version: int) -> None:
    response = describe(node, version)
    assert [result.log_dir for result in response.results] == ["/a", "/b"]
    assert {result.error_code for result in response.results} == {0}
    usage = (TERABYTE, TERABYTE // 2) if version >= 4 else (-1, -1)
    assert {(result.total_bytes, result.usable_bytes) for result in response.results} == {usage}


def test_partitions_are_described_with_their_sizes(node: DataNode) -> None:
    records = make_batch()
    node.append("t", 1, records)
    partitions = find_partitions(node)
    assert partitions.keys() == {("t", 0), ("t", 1), ("u", 0), ("__consumer_offsets", 0)}
    assert {path for path, _ in partitions.values()} == {"/a", "/b"}
    assert (partitions["t", 0][1].partition_size, partitions["t", 1][1].partition_size) == (0, len(records))
    assert {(part.offset_lag, part.is_future_key) for _, part in partitions.values()} == {(0, False)}


def test_only_requested_partitions_are_described(node: DataNode) -> None:
    assert find_partitions(node, t=[1, 7], absent=[0]).keys() == {("t", 1)}
    assert not find_partitions(node, t=[])
    answer = node.ask(DescribeLogDirsRequest(topics=[]), DescribeLogDirsResponse, 5)
    assert [result.topics for result in answer.results] == [[], []]


def test_a_request_for_one_partition_passes_over_no_other(node: DataNode, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[PartitionName] = set()
    directories = node.node.replicas.directories
    find_home = directories.find_home

    def note_and_find(name: PartitionName) -> Directory | None:
        asked.add(name)
        return find_home(name)

    monkeypatch.setattr(directories, "find_home", note_and_find)
    assert find_partitions(node, t=[1]).keys() == {("t", 1)}
    assert asked == {("t", 1)}


def test_a_failed_directory_is_described_with_its_error(node: DataNode) -> None:
    node.node.replicas.take_directory_offline(node.node.directories[1], OSError("gone"))
    working, failed = describe(node).results
    assert (working.error_code, failed.error_code) == (0, ErrorCode.KAFKA_STORAGE_ERROR)
    assert (failed.log_dir, failed.topics, failed.total_bytes) == ("/b", [], -1)


def test_a_copy_is_described_beside_its_partition(node: DataNode) -> None:
    node.append("t", 0, make_batch(3))
    home = find_partitions(node)["t", 0][0]
    other = "/b" if home == "/a" else "/a"
    node.node.replicas.move("t", 0, other)
    copy = next(iter(node.node.moves))
    described = node.send(DescribeLogDirsRequest(topics=None), 5)
    for disk in node.node.disks:
        disk.waiting.rotate(1)  # the last request comes first: the copy has only begun
        disk.waiting.popleft()()
    results = node.read(described, DescribeLogDirsResponse, 5).results
    (part,) = [
        part
        for result in results
        for entry in result.topics
        for part in entry.partitions
        if part.is_future_key and result.log_dir == other
    ]
    assert (part.partition_index, part.partition_size, part.offset_lag) == (0, 0, 3)
    assert copy.target.path == other
    node.node.work()
    assert find_partitions(node)["t", 0] == (
        other, DescribeLogDirsPartition(partition_index=0, partition_size=len(make_batch(3)), offset_lag=0)
    )  # fmt: skip


@pytest.mark.parametrize("version", range(3))
def test_partitions_are_moved(node: DataNode, version: int) -> None:
    node.append("t", 0, make_batch(3))
    home = find_partitions(node)["t", 0][0]
    other = "/b" if home == "/a" else "/a"
    assert alter(node, (other, "t", 0), (home, "t", 1), version=version) == {("t", 0): 0, ("t", 1): 0}
    assert (find_partitions(node)["t", 0][0], find_partitions(node)["t", 1][0]) == (other, home)
    # The last of several directories counts.
    assert alter(node, (other, "t", 0), (home, "t", 0), version=version) == {("t", 0): 0}
    assert find_partitions(node)["t", 0][0] == home


def test_a_cordoned_directory_is_marked_and_takes_no_partition(node: DataNode) -> None:
    node.node.replicas.directories._cordoned = lambda: ["/b"]
    assert [result.is_cordoned for result in describe(node).results] == [False, True]
    assert alter(node, ("/b", "t", 0), ("/a", "t", 1)) == {("t", 0): ErrorCode.INVALID_REPLICA_ASSIGNMENT, ("t", 1): 0}


def test_each_refused_move_has_its_own_error(node: DataNode) -> None:
    assert alter(node, ("/c", "t", 0), ("/a/", "t", 1), ("/a", "absent", 0), ("/b", "t", 7), ("", "u", 0)) == {
        ("t", 0): ErrorCode.LOG_DIR_NOT_FOUND,
        ("t", 1): ErrorCode.LOG_DIR_NOT_FOUND,
        ("absent", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("t", 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("u", 0): ErrorCode.LOG_DIR_NOT_FOUND,
    }
    assert alter(node) == {}


@pytest.mark.parametrize("path", ["/a", "/b"])
def test_a_topic_to_come_is_made_where_it_is_wanted(node: DataNode, path: str) -> None:
    alter(node, (path, "new", 0))
    node.node.open(topic("new", 1, b"n" * 16))
    assert find_partitions(node)["new", 0][0] == path
