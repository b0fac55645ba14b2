"""Fetches that reach damaged batches, by new clients and by old ones."""

from __future__ import annotations

import pytest

from kafkacompat.wire.apis.fetch import FetchResponse
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.message_set import read_message_set
from kafkacompat.wire.record_batch import read_header, split_batches
from tests.handlers.data_node import DataNode, make_batch
from tests.handlers.test_fetch import ask, list_codes, make_partition, make_request

SIZE = len(make_batch())
BAD = 2


def make_damaged_node(byte: int, *, known: bool) -> DataNode:
    """A node with five batches in t-0. One has a flipped bit."""
    node = DataNode()
    for _ in range(5):
        node.append("t", 0)
    log = node.node.replicas.find("t", 0).log
    file = node.node.files.open(log.segments.active.files.path(".log"))
    data = bytearray(file.pread(file.size(), 0))
    data[BAD * SIZE + byte] ^= 0x80
    file.truncate(0)
    file.append((data,), len(data))
    file.close()
    log.state.recent_batches.clear()
    if known:
        log.examiner.examine(log.segments.active)
    return node


def list_offsets(response: FetchResponse) -> list[int]:
    ((data,),) = [topic.partitions for topic in response.responses]
    return [read_header(batch).base_offset for batch in split_batches(data.records)]  # type: ignore[arg-type]


def old_offsets(response: FetchResponse) -> list[int]:
    ((data,),) = [topic.partitions for topic in response.responses]
    return [message.offset for message in read_message_set(data.records)]  # type: ignore[arg-type]


@pytest.mark.parametrize("byte", [8, 16, 30, 65])
@pytest.mark.parametrize("version", [4, 12])
def test_fetch_refuses_known_damage_and_serves_the_other_batches(byte: int, version: int) -> None:
    node = make_damaged_node(byte, known=True)
    assert list_offsets(ask(node, make_request(make_partition(0)), version)) == [0, 1]
    assert list_codes(ask(node, make_request(make_partition(BAD)), version)) == [ErrorCode.CORRUPT_MESSAGE]
    assert list_offsets(ask(node, make_request(make_partition(BAD + 1)), version)) == [3, 4]


@pytest.mark.parametrize("offset", [BAD + 1, BAD + 2])
def test_a_length_that_leads_nowhere_is_looked_into_before_anybody_is_answered(offset: int) -> None:
    node = make_damaged_node(8, known=False)
    assert list_offsets(ask(node, make_request(make_partition(offset)))) == list(range(offset, 5))
    assert list(node.node.replicas.find("t", 0).log.examiner.corrupt) == [0]


@pytest.mark.parametrize("version", [0, 2])
def test_old_clients_get_the_batches_before_the_damage(version: int) -> None:
    node = make_damaged_node(65, known=False)
    log = node.node.replicas.find("t", 0).log
    assert old_offsets(ask(node, make_request(make_partition(0)), version)) == [0, 1]
    assert list_codes(ask(node, make_request(make_partition(BAD)), version)) == [ErrorCode.CORRUPT_MESSAGE]
    node.node.work()
    assert [bad.first_offset for bad in log.examiner.corrupt[0]] == [BAD]
    assert old_offsets(ask(node, make_request(make_partition(BAD + 1)), version)) == [3, 4]
