"""Produce where checking takes long: elsewhere, in its order, while others go on."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.handlers.context import Pending, UnanswerableError
from kafkacompat.storage.intake.validation import AT_ONCE_RECORDS, AT_ONCE_UNPACKED_BYTES
from kafkacompat.storage.log import appender
from kafkacompat.storage.log_config import LOG_APPEND_TIME, LogConfig
from kafkacompat.timers import TURN_SECONDS
from kafkacompat.wire.apis.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
)
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.record_batch import build_batch
from tests.fakes.disk import ManualDisk
from tests.handlers.data_node import NOW_MS, DataNode, make_batch
from tests.handlers.test_old_produce import list_records, make_messages, read_stored
from tests.handlers.test_produce import list_codes, make_request
from tests.kafkacompat.metadata.deferreds import has_fired, outcome
from tests.kafkacompat.partitions.node import topic

ZSTD = 4
MANY = AT_ONCE_RECORDS + 1


@pytest.fixture(scope="module")
def many() -> bytes:
    return make_batch(MANY, codec=ZSTD, value=b"")


@pytest.fixture(autouse=True)
def _logs_that_check_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that was checked once, here or in a worker, is not checked again."""
    monkeypatch.setattr(appender, "check_batch", lambda *_: 1 // 0)


def read_answers(node: DataNode, pending: Any, version: int = 9) -> list[PartitionProduceResponse]:
    answer: ProduceResponse = node.read(pending, ProduceResponse, version)
    return answer.responses[0].partition_responses


def end_offset(node: DataNode, index: int = 0) -> int:
    return node.node.replicas.find("t", index).log.log_end_offset


def test_many_records_are_checked_in_a_worker_and_the_next_request_waits(many: bytes) -> None:
    node = DataNode()
    pending = node.send(make_request(many), 9)
    assert isinstance(pending, Pending) and pending.in_order and not pending.abandonable
    assert not has_fired(pending.response)
    assert end_offset(node) == 0
    node.node.work()
    (answer,) = read_answers(node, pending)
    assert (answer.error_code, answer.base_offset) == (0, 0)
    assert node.workers.calls == ["take_in"]
    assert read_stored(node)[21:] == many[21:]


def test_a_few_are_checked_at_once() -> None:
    node = DataNode()
    assert list_codes(read_answers(node, node.send(make_request(make_batch(AT_ONCE_RECORDS)), 9))) == [0]
    assert node.workers.calls == []


def test_a_bomb_is_refused_by_a_worker() -> None:
    node = DataNode(LogConfig(max_decompressed_bytes=2 * AT_ONCE_UNPACKED_BYTES))
    bomb = make_batch(codec=ZSTD, value=bytes(2 * AT_ONCE_UNPACKED_BYTES))
    pending = node.send(make_request(bomb), 9)
    node.node.work()
    (answer,) = read_answers(node, pending)
    assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert node.workers.calls == ["take_in"]
    assert end_offset(node) == 0


def test_refused_records_are_named_from_there_too() -> None:
    node = DataNode(LogConfig(cleanup_policy=frozenset({"compact"})))
    keyless = build_batch([(NOW_MS, None, b"", [])] * MANY)
    pending = node.send(make_request(keyless), 9)
    node.node.work()
    (answer,) = read_answers(node, pending)
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors[:2]] == [0, 1]


def test_a_batch_is_recompressed_in_a_worker(many: bytes) -> None:
    node = DataNode(LogConfig(compression_type="gzip", validation="header"))
    pending = node.send(make_request(many), 9)
    node.node.work()
    assert list_codes(read_answers(node, pending)) == [0]
    assert len(list_records(node)) == MANY


# Order


def test_others_go_on_in_the_same_partition_meanwhile(many: bytes) -> None:
    node = DataNode()
    pending = node.send(make_request(many), 9)
    assert [answer.base_offset for answer in read_answers(node, node.send(make_request(make_batch()), 9))] == [0]
    node.node.work()
    assert [answer.base_offset for answer in read_answers(node, pending)] == [1]


def test_one_request_is_appended_in_its_order(many: bytes) -> None:
    node = DataNode()
    asked = make_request(many, make_batch())
    asked.topic_data[0].partition_data += [
        PartitionProduceData(index=0, records=make_batch()),
        PartitionProduceData(index=0, records=many),
    ]
    pending = node.send(asked, 9)
    assert end_offset(node, 1) == 0
    node.node.work()
    assert [(answer.index, answer.base_offset) for answer in read_answers(node, pending)] == [
        (0, 0),
        (1, 0),
        (0, MANY),
        (0, MANY + 1),
    ]
    # A small batch is checked at once when its turn comes.
    assert node.workers.calls == ["take_in"] * 2


def test_one_request_with_many_takes_turns_with_others(many: bytes) -> None:
    node = DataNode()
    pending = [node.send(make_request(many, many), 9), node.send(make_request(many), 9)]
    assert len(node.workers.disk.waiting) == 2
    node.node.work()
    assert [list_codes(read_answers(node, response)) for response in pending] == [[0, 0], [0]]


def test_a_batch_from_a_worker_may_need_a_new_segment(many: bytes) -> None:
    node = DataNode(LogConfig(segment_bytes=len(many)))
    first, second = (node.send(make_request(many), 9) for _ in range(2))
    node.node.work()
    assert [answer.base_offset for pending in (first, second) for answer in read_answers(node, pending)] == [0, MANY]


def test_the_time_of_the_log_is_that_of_the_append(many: bytes) -> None:
    node = DataNode(LogConfig(message_timestamp_type=LOG_APPEND_TIME))
    pending = node.send(make_request(many), 9)
    node.node.clock.advance(5)
    node.node.work()
    (answer,) = read_answers(node, pending)
    assert answer.log_append_time_ms == NOW_MS + 5000
    assert {record.timestamp for record in list_records(node)} == {NOW_MS + 5000}


def test_a_message_set_is_checked_where_it_is_converted() -> None:
    node = DataNode()
    pending = node.send(make_request(make_messages(MANY)), 2)
    node.node.work()
    assert list_codes(read_answers(node, pending, 2)) == [0]
    assert len(list_records(node)) == MANY


# Without answers, and without partitions


def test_without_acks_the_end_is_waited_for_too(many: bytes) -> None:
    node = DataNode()
    pending = node.send(make_request(many, acks=0), 9)
    assert isinstance(pending, Pending) and pending.in_order
    node.node.work()
    assert outcome(pending.response) is None
    assert end_offset(node) == MANY


def test_without_acks_a_workers_refusal_closes_the_connection() -> None:
    node = DataNode(LogConfig(cleanup_policy=frozenset({"compact"})))
    pending = node.send(make_request(build_batch([(NOW_MS, None, b"", [])] * MANY), acks=0), 9)
    node.node.work()
    with pytest.raises(UnanswerableError, match="t-0 failed with INVALID_RECORD"):
        outcome(pending.response)


def test_a_partition_that_is_deleted_meanwhile_takes_nothing(many: bytes) -> None:
    node = DataNode()
    pending = node.send(make_request(many, make_batch()), 9)
    node.delete(topic("t", 2))
    assert list_codes(read_answers(node, pending)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2


def test_a_topic_that_took_the_name_of_a_deleted_one_gets_nothing_that_was_meant_for_that(many: bytes) -> None:
    node = DataNode()
    node.workers.disk = ManualDisk()
    pending = node.send(make_request(many, make_batch()), 9)
    node.delete(topic("t", 2))
    node.node.open(topic("t", 2, b"another topic id"))
    node.workers.disk.work()
    assert list_codes(read_answers(node, pending)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
    assert (end_offset(node), end_offset(node, 1)) == (0, 0)


def test_a_broker_that_closes_its_logs_appends_nothing_to_them(many: bytes) -> None:
    node = DataNode()
    pending = node.send(make_request(many, make_batch()), 9)
    node.conversions.close()
    node.node.work()
    assert list_codes(read_answers(node, pending)) == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2
    assert (end_offset(node), end_offset(node, 1)) == (0, 0)


# A request of many batches that take a little each


class Busy:
    """A clock by which every look at it takes half a turn."""

    def __init__(self, node: DataNode) -> None:
        self.clock = node.node.clock
        self.turns = 0
        node.services.clock = self

    def seconds(self) -> float:
        self.clock.rightNow += TURN_SECONDS / 2
        return self.clock.seconds()

    def callLater(self, *arguments: Any) -> Any:
        self.turns += 1
        return self.clock.callLater(*arguments)


def two_for_each() -> ProduceRequest:
    asked = make_request(make_batch(), make_batch())
    asked.topic_data[0].partition_data *= 2
    return asked


def test_a_request_lets_others_have_their_turn() -> None:
    node = DataNode()
    clock = Busy(node)
    pending = node.send(two_for_each(), 9)
    assert isinstance(pending, Pending) and pending.in_order
    assert (end_offset(node), end_offset(node, 1)) == (1, 0)
    while not has_fired(pending.response):
        node.node.clock.advance(0)
    assert clock.turns > 1
    assert [answer.base_offset for answer in read_answers(node, pending)] == [0, 0, 1, 1]
    assert node.workers.calls == []


def test_its_next_turn_does_not_come_once_logs_are_closed() -> None:
    node = DataNode()
    Busy(node)
    pending = node.send(two_for_each(), 9)
    node.conversions.close()
    while not has_fired(pending.response):
        node.node.clock.advance(0)
    assert list_codes(read_answers(node, pending)) == [0] + [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 3
    assert (end_offset(node), end_offset(node, 1)) == (1, 0)
