"""Produce: one batch a partition, each judged by itself."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from kafkacompat.handlers.context import Pending, UnanswerableError
from kafkacompat.storage.log_config import LOG_APPEND_TIME, LogConfig
from kafkacompat.wire.apis.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.record_batch import build_batch
from tests.handlers.data_node import NOW_MS, T_ID, DataNode, make_batch
from tests.kafkacompat.metadata.deferreds import has_fired, outcome
from tests.kafkacompat.partitions.node import topic

ZSTD, GZIP = 4, 1
ONE_BATCH = LogConfig(segment_bytes=len(make_batch()))


def make_request(*records: bytes | None, acks: int = -1, name: str = "t", topic_id: bytes = T_ID) -> ProduceRequest:
    """The first batch for partition 0, the next for 1, and so on."""
    data = [PartitionProduceData(index=index, records=batch) for index, batch in enumerate(records)]
    return ProduceRequest(
        acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name=name, topic_id=topic_id, partition_data=data)]
    )


def ask(node: DataNode, asked: ProduceRequest, version: int = 9, **kw: Any) -> list[PartitionProduceResponse]:
    response = node.ask(asked, ProduceResponse, version, **kw)
    return response.responses[0].partition_responses


def list_codes(responses: list[PartitionProduceResponse]) -> list[int]:
    return [response.error_code for response in responses]


@pytest.mark.parametrize("version", [3, 5, 8, 9, 12, 13])
@pytest.mark.parametrize("acks", [-1, 1])
def test_batches_get_the_offsets_that_follow(version: int, acks: int) -> None:
    node = DataNode()
    node.append("t", 1)
    responses = ask(node, make_request(make_batch(3), make_batch(), acks=acks), version)
    assert [(response.index, response.error_code, response.base_offset) for response in responses] == [
        (0, 0, 0),
        (1, 0, 1),
    ]
    assert [response.log_append_time_ms for response in responses] == [-1, -1]
    assert [response.log_start_offset for response in responses] == ([0, 0] if version >= 5 else [-1, -1])


def test_the_topic_is_named_as_it_was_asked_for() -> None:
    node = DataNode()
    by_name = node.ask(make_request(make_batch()), ProduceResponse, 12).responses[0]
    by_id = node.ask(make_request(make_batch(), name=""), ProduceResponse, 13).responses[0]
    assert (by_name.name, by_id.topic_id) == ("t", T_ID)


def test_log_append_time_is_returned() -> None:
    node = DataNode(LogConfig(message_timestamp_type=LOG_APPEND_TIME))
    assert ask(node, make_request(make_batch()))[0].log_append_time_ms == NOW_MS


def test_an_absent_topic_is_unknown_by_name_and_by_id() -> None:
    node = DataNode()
    assert list_codes(ask(node, make_request(make_batch(), name="absent"), 12)) == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ]
    assert list_codes(ask(node, make_request(make_batch(), topic_id=b"x" * 16), 13)) == [ErrorCode.UNKNOWN_TOPIC_ID]
    responses = ask(node, make_request(make_batch(), make_batch(), make_batch()))
    assert list_codes(responses) == [0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert (responses[2].base_offset, responses[2].log_start_offset) == (-1, -1)


@pytest.mark.parametrize("acks", [2, -2])
def test_other_acks_are_refused_for_each_partition(acks: int) -> None:
    node = DataNode()
    assert (
        list_codes(ask(node, make_request(make_batch(), make_batch(), acks=acks)))
        == [ErrorCode.INVALID_REQUIRED_ACKS] * 2
    )
    assert node.node.replicas.find("t", 0).log.log_end_offset == 0


def test_transactional_batches_need_a_transactional_id() -> None:
    node = DataNode()
    records = build_batch(
        [(NOW_MS, b"k", b"v", [])], producer_id=1, producer_epoch=0, base_sequence=0, transactional=True
    )
    asked = make_request(make_batch(), records)
    assert list_codes(ask(node, asked)) == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * 2


def test_a_refusal_says_where_the_log_begins_if_the_log_judged() -> None:
    node = DataNode()
    node.append("t", 0)
    node.node.replicas.find("t", 0).log.trimmer.advance_log_start_offset(1)
    judged, corrupt = make_request(b""), make_request(make_batch()[:-1] + b"x")
    assert [ask(node, request)[0].log_start_offset for request in (judged, corrupt)] == [1, -1]


def test_internal_topics_are_for_the_admin_client_only() -> None:
    node = DataNode()
    asked = make_request(make_batch(), name="__consumer_offsets")
    assert list_codes(ask(node, asked, 12)) == [ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert list_codes(ask(node, asked, 12, client_id="__admin_client")) == [0]


def test_zstd_needs_version_7() -> None:
    node = DataNode()
    records = build_batch([(NOW_MS, b"k", b"v", [])])
    marked = bytearray(records)
    marked[22] |= ZSTD
    assert list_codes(ask(node, make_request(bytes(marked)), 6)) == [ErrorCode.UNSUPPORTED_COMPRESSION_TYPE]
    # From version 7 on it is judged as any other batch: this one was changed without its CRC.
    assert list_codes(ask(node, make_request(bytes(marked)), 7)) == [ErrorCode.CORRUPT_MESSAGE]
    assert list_codes(ask(node, make_request(make_batch(codec=GZIP)), 3)) == [0]


@pytest.mark.parametrize("records", [None, b""])
def test_no_records_are_an_invalid_record(records: bytes | None) -> None:
    responses = ask(DataNode(), make_request(records, make_batch()))
    assert list_codes(responses) == [ErrorCode.INVALID_RECORD, 0]
    assert responses[0].error_message


def test_refused_records_are_named_from_version_8() -> None:
    records = build_batch([(NOW_MS, b"k", b"v", []), (NOW_MS, None, b"v", [])])
    config = LogConfig(cleanup_policy=frozenset({"compact"}))
    response = ask(DataNode(config), make_request(records), 8)[0]
    assert response.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in response.record_errors] == [1]
    assert response.record_errors[0].batch_index_error_message and response.error_message
    older = ask(DataNode(config), make_request(records), 7)[0]
    assert (older.error_code, older.record_errors) == (ErrorCode.INVALID_RECORD, [])


def test_a_defect_of_one_partition_is_an_unknown_error_of_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    node = DataNode()
    monkeypatch.setattr(node.node.replicas.find("t", 0), "append", lambda *_args: 1 // 0)
    assert list_codes(ask(node, make_request(make_batch(), make_batch()))) == [ErrorCode.UNKNOWN_SERVER_ERROR, 0]


# acks=0


def test_without_acks_there_is_no_answer() -> None:
    node = DataNode()
    assert node.send(make_request(make_batch(), acks=0), 9) is None
    assert node.node.replicas.find("t", 0).log.log_end_offset == 1


def test_without_acks_an_error_closes_the_connection() -> None:
    node = DataNode()
    with pytest.raises(UnanswerableError, match="t-2 failed with UNKNOWN_TOPIC_OR_PARTITION"):
        node.send(make_request(make_batch(), make_batch(), make_batch(), acks=0), 9)
    assert node.node.replicas.find("t", 1).log.log_end_offset == 1


def test_without_acks_the_error_names_the_topic_by_its_id() -> None:
    with pytest.raises(UnanswerableError, match="to dHR0dHR0dHR0dHR0dHR0dA-2 failed with"):
        DataNode().send(make_request(make_batch(), make_batch(), make_batch(), acks=0, name=""), 13)


def test_without_acks_a_later_error_closes_the_connection_too() -> None:
    node = DataNode(ONE_BATCH)
    node.append("t", 0)
    pending = node.send(make_request(make_batch(), acks=0), 9)
    assert isinstance(pending, Pending)
    node.delete(topic("t", 2, T_ID))
    with pytest.raises(UnanswerableError):
        outcome(pending.response)


def test_without_acks_there_is_no_answer_later_either() -> None:
    node = DataNode(ONE_BATCH)
    node.append("t", 0)
    pending = node.send(make_request(make_batch(), acks=0), 9)
    node.node.work()
    assert outcome(pending.response) is None


# A new segment is being made


def test_an_answer_waits_for_a_new_segment_and_the_next_request_with_it() -> None:
    node = DataNode(ONE_BATCH)
    node.append("t", 0)
    pending = node.send(make_request(make_batch(), make_batch()), 9)
    assert isinstance(pending, Pending) and pending.in_order
    assert not has_fired(pending.response)
    assert not pending.abandonable
    node.node.work()
    assert has_fired(pending.response)
    responses = node.read(pending, ProduceResponse, 9).responses[0].partition_responses
    assert [(response.error_code, response.base_offset) for response in responses] == [(0, 1), (0, 0)]


def test_a_refusal_in_line_is_answered_in_its_place() -> None:
    node = DataNode(ONE_BATCH)
    node.append("t", 0)
    first = node.send(make_request(make_batch()), 9)
    second = node.send(make_request(make_batch()[:-1] + b"x", make_batch()), 9)
    node.node.work()
    assert list_codes(node.read(first, ProduceResponse, 9).responses[0].partition_responses) == [0]
    responses = node.read(second, ProduceResponse, 9).responses[0].partition_responses
    assert list_codes(responses) == [ErrorCode.CORRUPT_MESSAGE, 0]


def test_a_deleted_topic_fails_queued_appends() -> None:
    node = DataNode(ONE_BATCH)
    node.append("t", 0)
    pending = node.send(make_request(make_batch()), 9)
    node.delete(topic("t", 2, T_ID))
    responses = node.read(pending, ProduceResponse, 9).responses[0].partition_responses
    assert list_codes(responses) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_batch_that_is_only_to_be_synced_holds_up_no_other_request() -> None:
    node = DataNode(ONE_BATCH, syncs_always=True)
    first = node.send(make_request(make_batch(), make_batch()), 9)
    assert isinstance(first, Pending) and not first.in_order
    in_line = node.send(make_request(make_batch(), make_batch()), 9)
    assert isinstance(in_line, Pending) and in_line.in_order
    assert not has_fired(first.response)
    while node.node.disks[0].waiting or node.node.clock.getDelayedCalls():
        node.node.sync()
    for pending, offset in ((first, 0), (in_line, 1)):
        responses = outcome(pending.response).responses[0].partition_responses
        assert [(response.error_code, response.base_offset) for response in responses] == [(0, offset)] * 2


def test_without_acks_no_request_waits_for_a_sync() -> None:
    node = DataNode(syncs_always=True)
    assert node.send(make_request(make_batch(), acks=0), 9) is None
    partition = node.node.replicas.find("t", 0)
    assert partition.high_watermark.offset == 0
    node.node.sync()
    assert partition.high_watermark.offset == 1


def test_without_acks_requests_wait_too_while_the_disk_hangs() -> None:
    node = DataNode(syncs_always=True)
    node.send(make_request(make_batch(), acks=0), 9)
    node.node.clock.advance(0)
    node.node.clock.advance(1.1)
    hung = node.send(make_request(make_batch(), acks=0), 9)
    assert isinstance(hung, Pending)
    assert not (hung.in_order or has_fired(hung.response))
    node.node.sync()
    assert outcome(hung.response) is None
    assert node.send(make_request(make_batch(), acks=0), 9) is None


def test_a_failed_sync_is_returned_to_the_producer() -> None:
    node = DataNode(syncs_always=True)
    pending = node.send(make_request(make_batch(), make_batch()), 9)
    node.node.files.fail_on("sync", errno.ENOSPC)
    node.node.sync()
    assert list_codes(outcome(pending.response).responses[0].partition_responses) == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
    assert list_codes(ask(node, make_request(make_batch()))) == [ErrorCode.KAFKA_STORAGE_ERROR]
