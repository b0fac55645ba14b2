"""OffsetCommit and OffsetFetch in every version."""

from typing import Any

import pytest

from kafkacompat.metadata.store import StoreEntry
from kafkacompat.timers import now_ms
from kafkacompat.wire.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kafkacompat.wire.apis.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.primitives import ZERO_UUID
from tests.handlers.group_node import TOPIC_IDS, GroupNode
from tests.kafkacompat.groups.support import take_response

GROUP = "g"


def commit_request(partitions: dict[str, list[int]], version: int, **fields: Any) -> OffsetCommitRequest:
    """Offset 10 + partition for each."""
    topics = [
        OffsetCommitRequestTopic(
            name=name if version < 10 else "",
            topic_id=TOPIC_IDS.get(name, b"?" * 16) if version >= 10 else ZERO_UUID,
            partitions=[
                OffsetCommitRequestPartition(
                    partition_index=index, committed_offset=10 + index, committed_leader_epoch=3, committed_metadata="m"
                )
                for index in indexes
            ],
        )
        for name, indexes in partitions.items()
    ]
    return OffsetCommitRequest(**{"group_id": GROUP, "topics": topics, **fields})


def commit(node: GroupNode, version: int, partitions: dict[str, list[int]], **fields: Any) -> list[list[int]]:
    """The error codes, topic by topic."""
    answer = node.ask(commit_request(partitions, version, **fields), OffsetCommitResponse, version)
    return [[partition.error_code for partition in topic.partitions] for topic in answer.topics]


@pytest.mark.parametrize("version", range(1, 11))
def test_offsets_are_committed(version: int) -> None:
    node = GroupNode()
    answer = node.ask(commit_request({"t": [0, 1], "u": [1]}, version), OffsetCommitResponse, version)
    assert [(topic.name, topic.topic_id) for topic in answer.topics] == (
        [("t", ZERO_UUID), ("u", ZERO_UUID)] if version < 10 else [("", TOPIC_IDS["t"]), ("", TOPIC_IDS["u"])]
    )
    assert [[partition.partition_index for partition in topic.partitions] for topic in answer.topics] == [[0, 1], [1]]
    assert not any(partition.error_code for topic in answer.topics for partition in topic.partitions)
    offsets = [node.world.committed(topic=name, partition=index) for name in "tu" for index in (0, 1)]
    assert offsets == [10, 11, -1, 11]


NO_TOPIC = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(("version", "missing"), [(2, NO_TOPIC), (9, NO_TOPIC), (10, ErrorCode.UNKNOWN_TOPIC_ID)])
def test_partitions_that_do_not_exist_are_refused_and_the_others_committed(version: int, missing: ErrorCode) -> None:
    node = GroupNode()
    codes = commit(node, version, {"t": [0, 2, -1], "missing": [0]})
    assert codes == [[0, NO_TOPIC, NO_TOPIC], [missing]]
    assert node.world.committed() == 10


def test_a_groups_error_is_returned_for_existing_partitions_only() -> None:
    node = GroupNode()
    node.world.stable()
    codes = commit(node, 9, {"t": [0, 2], "u": [0]})
    wrong = ErrorCode.UNKNOWN_MEMBER_ID
    assert codes == [[wrong, NO_TOPIC], [wrong]]


@pytest.mark.parametrize(("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_generation_of_a_group_that_does_not_exist(version: int, code: ErrorCode) -> None:
    assert commit(GroupNode(), version, {"t": [0]}, generation_id_or_member_epoch=3, member_id="m") == [[code]]


def test_a_commit_is_answered_when_it_is_in_the_log() -> None:
    node = GroupNode()
    node.world.log.hold = True
    waiting = node.send(commit_request({"t": [0]}, 9), 9)
    node.world.log.held.pop().fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    answer = node.read(waiting, OffsetCommitResponse, 9)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize(("version", "kept"), [(4, False), (5, True)])
def test_up_to_version_4_a_commit_names_how_long_it_is_kept(version: int, kept: bool) -> None:
    node = GroupNode()
    commit(node, version, {"t": [0]}, retention_time_ms=1000)
    node.world.clock.advance(601)
    assert (node.world.committed() == 10) is kept


@pytest.mark.parametrize(("version", "at_s"), [(1, 0), (2, 100), (9, 100)])
def test_in_version_1_an_offset_says_when_it_was_committed(version: int, at_s: int) -> None:
    node = GroupNode()
    start_ms = now_ms(node.world.clock)
    node.world.clock.advance(100)
    request = commit_request({"t": [0, 1]}, version)
    request.topics[0].partitions[0].commit_timestamp = start_ms
    node.ask(request, OffsetCommitResponse, version)
    offsets = take_response(node.world.coordinator.fetch_offsets(GROUP)).offsets.by_topic["t"]
    assert [offsets[index].commit_timestamp_ms - start_ms for index in (0, 1)] == [at_s * 1000, 100_000]


# Version 0: offsets in the metadata store


KEY = "/consumers/g/offsets/t/1"


def test_version_0_reads_only_offsets_of_version_0() -> None:
    node = GroupNode()
    assert commit(node, 0, {"t": [0, 1], "u": [1]}) == [[0, 0], [0]]
    assert commit(node, 2, {"u": [0]}) == [[0]]
    assert node.store.entries[KEY] == StoreEntry(b"11", 0)
    stored = fetch_old(node, 0, {"t": [1, 0], "u": [0, 1]})
    assert list_rows(stored.topics) == [
        ("t", 1, 11, -1, "", 0),
        ("t", 0, 10, -1, "", 0),
        ("u", 0, -1, -1, "", NO_TOPIC),
        ("u", 1, 11, -1, "", 0),
    ]
    assert [row[2] for row in list_rows(fetch_old(node, 1, {"t": [1], "u": [0, 1]}).topics)] == [-1, 10, -1]


def test_version_0_refuses_absent_partitions_and_long_metadata() -> None:
    node = GroupNode()
    request = commit_request({"t": [0, 1, 2], "missing": [0]}, 0)
    request.topics[0].partitions[0].committed_metadata = "x" * 4097
    answer = node.ask(request, OffsetCommitResponse, 0)
    codes = [[partition.error_code for partition in topic.partitions] for topic in answer.topics]
    assert codes == [[ErrorCode.OFFSET_METADATA_TOO_LARGE, 0, NO_TOPIC], [NO_TOPIC]]
    assert list(node.store.entries) == [KEY]
    assert {row[5] for row in list_rows(fetch_old(node, 0, {"t": [0, 2, -1], "missing": [0]}).topics)} == {NO_TOPIC}


def test_version_0_serves_groups_without_a_coordinator() -> None:
    node = GroupNode()
    node.world.coordinator.on_resignation(node.world.coordinator.partition_for(GROUP))
    assert commit(node, 0, {"t": [0]}) == [[0]]
    assert list_rows(fetch_old(node, 0, {"t": [0]}).topics) == [("t", 0, 10, -1, "", 0)]


def test_version_0_says_that_the_store_fails() -> None:
    node = GroupNode()
    node.store.failing = True
    assert commit(node, 0, {"t": [0], "missing": [0]}) == [[ErrorCode.UNKNOWN_SERVER_ERROR], [NO_TOPIC]]
    assert list_rows(fetch_old(node, 0, {"t": [0]}).topics) == [("t", 0, -1, -1, "", ErrorCode.UNKNOWN_SERVER_ERROR)]


# OffsetFetch


def fetch_old(node: GroupNode, version: int, topics: dict[str, list[int]] | None, **fields: Any) -> OffsetFetchResponse:
    wanted = None
    if topics is not None:
        wanted = [OffsetFetchRequestTopic(name=name, partition_indexes=indexes) for name, indexes in topics.items()]
    request = OffsetFetchRequest(**{"group_id": GROUP, "topics": wanted, **fields})
    return node.ask(request, OffsetFetchResponse, version)


def fetch_new(
    node: GroupNode, version: int, topics: dict[str, list[int]] | None, group_ids: tuple[str, ...] = (GROUP,)
) -> list[OffsetFetchResponseGroup]:
    wanted = None
    if topics is not None:
        wanted = [
            OffsetFetchRequestTopics(
                name=name if version < 10 else "",
                topic_id=TOPIC_IDS.get(name, b"?" * 16) if version >= 10 else ZERO_UUID,
                partition_indexes=indexes,
            )
            for name, indexes in topics.items()
        ]
    groups = [OffsetFetchRequestGroup(group_id=group_id, topics=wanted) for group_id in group_ids]
    return node.ask(OffsetFetchRequest(groups=groups), OffsetFetchResponse, version).groups


def list_rows(topics: list[OffsetFetchResponseTopic] | list[OffsetFetchResponseTopics]) -> list[tuple[object, ...]]:
    return [
        (
            topic.name or getattr(topic, "topic_id", b""),
            partition.partition_index,
            partition.committed_offset,
            partition.committed_leader_epoch,
            partition.metadata,
            partition.error_code,
        )
        for topic in topics
        for partition in topic.partitions
    ]


@pytest.mark.parametrize("version", range(1, 8))
def test_one_group_is_read(version: int) -> None:
    node = GroupNode()
    commit(node, 9, {"t": [1]})
    answer = fetch_old(node, version, {"t": [0, 1], "missing": [5]})
    assert answer.error_code == 0
    epoch = 3 if version >= 5 else -1
    assert list_rows(answer.topics) == [
        ("t", 0, -1, -1, "", 0),
        ("t", 1, 11, epoch, "m", 0),
        ("missing", 5, -1, -1, "", 0),
    ]


@pytest.mark.parametrize("version", [8, 9])
def test_several_groups_are_read(version: int) -> None:
    node = GroupNode()
    commit(node, 9, {"t": [1]})
    known, unknown = fetch_new(node, version, {"t": [1]}, (GROUP, "x"))
    assert (known.group_id, known.error_code, list_rows(known.topics)) == (GROUP, 0, [("t", 1, 11, 3, "m", 0)])
    assert (unknown.group_id, unknown.error_code, list_rows(unknown.topics)) == ("x", 0, [("t", 1, -1, -1, "", 0)])


def test_a_partition_named_twice_is_read_once() -> None:
    node = GroupNode()
    commit(node, 9, {"t": [1]})
    (only,) = fetch_new(node, 9, {"t": [1, 1]}, (GROUP, GROUP))
    assert list_rows(only.topics) == [("t", 1, 11, 3, "m", 0)]
    once = OffsetFetchRequestTopics(name="t", partition_indexes=[1])
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=[once, once])])
    (only,) = node.ask(request, OffsetFetchResponse, 9).groups
    assert list_rows(only.topics) == [("t", 1, 11, 3, "m", 0)]


def test_topics_are_read_by_id() -> None:
    node = GroupNode()
    commit(node, 10, {"t": [1]})
    (group,) = fetch_new(node, 10, {"t": [1], "missing": [0]})
    unknown = ErrorCode.UNKNOWN_TOPIC_ID
    assert list_rows(group.topics) == [(TOPIC_IDS["t"], 1, 11, 3, "m", 0), (b"?" * 16, 0, -1, -1, "", unknown)]


def test_an_offset_of_an_earlier_topic_of_the_name_does_not_count() -> None:
    node = GroupNode()
    commit(node, 10, {"t": [1]})
    TOPIC_IDS["t"], before = b"T" * 16, TOPIC_IDS["t"]
    try:
        node.set_topics(t=2)
        (by_id,) = fetch_new(node, 10, {"t": [1]})
        (by_name,) = fetch_new(node, 9, {"t": [1]})
    finally:
        TOPIC_IDS["t"] = before
    assert [row[2] for row in list_rows(by_id.topics)] == [-1]
    assert [row[2] for row in list_rows(by_name.topics)] == [11]


@pytest.mark.parametrize("version", [2, 7, 8, 9, 10])
def test_without_topics_everything_is_read(version: int) -> None:
    node = GroupNode()
    commit(node, 9, {"t": [1], "u": [0]})
    node.set_topics(t=2)
    topics: Any = fetch_old(node, version, None).topics if version < 8 else fetch_new(node, version, None)[0].topics
    expected = [("t", 1, 11), ("u", 0, 10)]
    if version >= 10:
        expected = [(TOPIC_IDS["t"], 1, 11)]  # type: ignore[list-item]
    assert [row[:3] for row in list_rows(topics)] == expected


def test_no_topics_is_nothing() -> None:
    node = GroupNode()
    commit(node, 9, {"t": [1]})
    assert fetch_old(node, 2, {}).topics == []
    assert fetch_new(node, 8, {})[0].topics == []


@pytest.mark.parametrize("version", range(1, 11))
def test_a_groups_error_is_in_the_place_of_the_version(version: int) -> None:
    node = GroupNode()
    node.world.coordinator.on_resignation(node.world.coordinator.partition_for(GROUP))
    code = ErrorCode.NOT_COORDINATOR
    if version >= 8:
        (group,) = fetch_new(node, version, {"t": [0]})
        assert (group.error_code, group.topics) == (code, [])
        return
    answer = fetch_old(node, version, {"t": [0]})
    if version >= 2:
        assert (answer.error_code, answer.topics) == (code, [])
    else:
        assert list_rows(answer.topics) == [("t", 0, -1, -1, "", code)]


def test_a_fetch_waits_for_the_commits_before_it_whichever_group_is_late() -> None:
    node = GroupNode()
    node.world.log.hold = True
    node.send(commit_request({"t": [0]}, 9), 9)
    groups = [OffsetFetchRequestGroup(group_id=group_id, topics=None) for group_id in (GROUP, "h")]
    assert node.world.coordinator.partition_for("h") != node.world.coordinator.partition_for(GROUP)
    waiting = node.send(OffsetFetchRequest(groups=groups), 9)
    node.world.log.held.pop().succeed()
    answer = node.read(waiting, OffsetFetchResponse, 9)
    assert [len(group.topics) for group in answer.groups] == [1, 0]
