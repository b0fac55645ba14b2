"""DeleteRecords: the start of a partition moves, and never back."""

from __future__ import annotations

import pytest

from kafkacompat.storage.log_config import LogConfig
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.kafkacompat.metadata.deferreds import outcome
from tests.kafkacompat.partitions.node import Node, topic


@pytest.mark.parametrize(("asked", "begins"), [(2, 2), (0, 0), (3, 3), (-1, 3)])
def test_deleted_records_are_gone_for_good(asked: int, begins: int) -> None:
    node = Node()
    node.open(topic())
    partition = node.replicas.find("t", 0)
    for _ in range(3):
        node.append(partition)
    partition.flush()
    deleting = node.replicas.delete_records(partition, asked)
    node.work()
    assert outcome(deleting) == begins
    node.files.crash()
    again = Node(files=node.files)
    again.open(topic())
    assert again.replicas.find("t", 0).log.log_start_offset == begins


def test_the_start_never_moves_back() -> None:
    node = Node()
    node.open(topic())
    partition = node.replicas.find("t", 0)
    for _ in range(3):
        node.append(partition)
    node.replicas.delete_records(partition, 2)
    again = node.replicas.delete_records(partition, 1)
    node.work()
    assert outcome(again) == 2


@pytest.mark.parametrize("offset", [4, -2])
def test_a_start_outside_the_log_is_refused(offset: int) -> None:
    node = Node()
    node.open(topic())
    for _ in range(3):
        node.append(node.replicas.find("t", 0))
    with pytest.raises(KafkaError) as caught:
        node.replicas.delete_records(node.replicas.find("t", 0), offset)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize(("policy", "refused"), [({"compact"}, True), ({"compact", "delete"}, False)])
def test_a_topic_that_is_only_compacted_keeps_its_start(policy: set[str], refused: bool) -> None:
    node = Node(config=LogConfig(cleanup_policy=frozenset(policy)))
    node.open(topic())
    try:
        node.replicas.delete_records(node.replicas.find("t", 0), 0)
    except KafkaError as problem:
        assert (refused, problem.code) == (True, ErrorCode.POLICY_VIOLATION)
    else:
        assert not refused
