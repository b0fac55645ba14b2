"""Fetch sessions of consumers, and reading what was fetched."""

from __future__ import annotations

import struct

import pytest

from kafkacompat.history.events import HistoryPartition
from kafkacompat.wire.apis.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.record_batch import build_batch
from tests.simulation.clients.fetch_session import FetchSession, WantedFetch
from tests.simulation.clients.fetched_records import FetchedRecords, read_fetched

T_ID = bytes([1] * 16)
A, B = HistoryPartition("t", 0), HistoryPartition("t", 1)


def want(offset: int) -> WantedFetch:
    return WantedFetch(T_ID, offset, 0, 1000)


def fill(session: FetchSession, wanted: dict[HistoryPartition, WantedFetch]) -> tuple[int, int, list[int], list[int]]:
    """Return what a request names: session, epoch, partitions and forgotten ones."""
    request = FetchRequest()
    session.fill(request, wanted)
    named = [partition.partition for topic in request.topics for partition in topic.partitions]
    forgotten = [partition for topic in request.forgotten_topics_data for partition in topic.partitions]
    return request.session_id, request.session_epoch, named, forgotten


def answer(*partitions: int, error_code: int = 0) -> FetchResponse:
    data = [PartitionData(partition_index=index, error_code=0, high_watermark=0) for index in partitions]
    topics = [FetchableTopicResponse(topic_id=T_ID, partitions=data)] if data else []
    return FetchResponse(error_code=error_code, session_id=9, responses=topics)


def test_a_session_names_only_changes() -> None:
    session = FetchSession()
    assert fill(session, {A: want(0), B: want(0)}) == (0, 0, [0, 1], [])
    session.receive(answer(0, 1))
    assert fill(session, {A: want(0), B: want(5)}) == (9, 1, [1], [])
    session.receive(answer())
    assert fill(session, {A: want(0)}) == (9, 2, [], [1])


def test_after_a_failure_the_next_request_ends_the_session_and_names_all() -> None:
    session = FetchSession()
    fill(session, {A: want(0)})
    session.receive(answer(0))
    session.fail()
    assert fill(session, {A: want(0)}) == (9, 0, [0], [])


def test_a_forgotten_session_begins_anew() -> None:
    session = FetchSession()
    fill(session, {A: want(0)})
    session.receive(answer(0))
    assert session.receive(answer(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)) == []
    assert fill(session, {A: want(0)}) == (0, 0, [0], [])


def test_a_full_response_without_a_partition_is_an_error() -> None:
    session = FetchSession()
    fill(session, {A: want(0), B: want(0)})
    with pytest.raises(AssertionError):
        session.receive(answer(0))


def batch(offset: int, value: str, producer_id: int = -1, *, marker: int | None = None) -> bytes:
    key = None if marker is None else struct.pack(">hh", 0, marker)
    return build_batch(
        [(0, key, value.encode(), ())],
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        leader_epoch=3,
        transactional=producer_id >= 0,
        control=marker is not None,
    )


def test_aborted_records_are_left_out_until_the_marker() -> None:
    data = (
        batch(0, "aborted", 5)
        + batch(1, "committed", 6)
        + batch(2, "", 5, marker=0)
        + batch(3, "next", 5)
        + batch(4, "", 6, marker=1)
    )
    aborted = [AbortedTransaction(producer_id=5, first_offset=0)]
    assert read_fetched(data, 0, aborted) == FetchedRecords([(1, "committed"), (3, "next")], 5, 3)
    assert read_fetched(data, 1, None) == FetchedRecords([(1, "committed"), (3, "next")], 5, 3)
    assert read_fetched(data, 0, None).records[0] == (0, "aborted")
