"""DescribeTransactions, ListTransactions and WriteTxnMarkers."""

from __future__ import annotations

import pytest

from kafkacompat.timers import TURN_SECONDS
from kafkacompat.wire.apis.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from kafkacompat.wire.apis.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kafkacompat.wire.apis.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafkacompat.wire.errors import ErrorCode
from tests.handlers.transaction_node import TransactionNode
from tests.kafkacompat.transactions.support import P0, P1, TiringClock, is_waiting

STARTED_MS = 1_000_000_000


def a_node() -> TransactionNode:
    """Two transactional ids: one that is new, one that is open."""
    node = TransactionNode()
    node.world.init("new")
    node.world.add(node.world.init("open"), P0, P1, name="open")
    node.world.clock.skip(10)
    return node


def test_transactions_are_described() -> None:
    request = DescribeTransactionsRequest(transactional_ids=["open", "unknown", "", "open"])
    states = a_node().ask(request, DescribeTransactionsResponse, 0).transaction_states
    assert [(state.transactional_id, state.error_code) for state in states] == [
        ("open", 0), ("unknown", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND), ("", ErrorCode.INVALID_REQUEST),
    ]  # fmt: skip
    described = states[0]
    assert (described.transaction_state, described.transaction_start_time_ms) == ("Ongoing", STARTED_MS)
    assert [(topic.topic, topic.partitions) for topic in described.topics] == [("t", [0, 1])]


def test_many_that_are_described_leave_others_their_turn() -> None:
    clock = TiringClock()
    node = TransactionNode(clock)
    clock.look_s = TURN_SECONDS / 10
    waiting = node.send(DescribeTransactionsRequest(transactional_ids=[f"id{number}" for number in range(30)]), 0)
    assert is_waiting(waiting)
    node.world.turn(5)
    assert len(node.read(waiting, DescribeTransactionsResponse, 0).transaction_states) == 30


def list_transactions(version: int = 2, **filters: object) -> list[str]:
    response = a_node().ask(ListTransactionsRequest(**filters), ListTransactionsResponse, version)  # type: ignore[arg-type]
    assert response.error_code == 0
    return sorted(state.transactional_id for state in response.transaction_states)


@pytest.mark.parametrize("version", range(3))
def test_transactions_are_listed(version: int) -> None:
    assert list_transactions(version) == ["new", "open"]
    assert list_transactions(version, state_filters=["Ongoing", "CompleteAbort"]) == ["open"]
    assert list_transactions(version, producer_id_filters=[100, 7]) == ["new"]
    assert list_transactions(version, state_filters=["nonsense"]) == []


def test_newer_filters() -> None:
    assert list_transactions(1, state_filters=["Ongoing"], duration_filter=9_999) == ["open"]
    assert list_transactions(1, state_filters=["Ongoing"], duration_filter=10_000) == []
    assert list_transactions(2, transactional_id_pattern="o.*") == ["open"]
    assert list_transactions(2, transactional_id_pattern="") == ["new", "open"]


def test_states_that_are_none_are_named() -> None:
    request = ListTransactionsRequest(state_filters=["Ongoing", "PrepareEpochFence", "ongoing", "", "ongoing"])
    response = a_node().ask(request, ListTransactionsResponse, 2)
    assert response.unknown_state_filters == ["ongoing", ""]


@pytest.mark.parametrize("pattern", ["a(", "*", "(?<=a)b", "(?!a)", r"(a)\1", "(?P=x)"])
def test_a_pattern_that_is_none_is_refused(pattern: str) -> None:
    response = a_node().ask(ListTransactionsRequest(transactional_id_pattern=pattern), ListTransactionsResponse, 2)
    assert (response.error_code, response.transaction_states) == (ErrorCode.INVALID_REGULAR_EXPRESSION, [])


def test_a_stopped_coordinator_lists_no_transactions() -> None:
    node = a_node()
    node.world.coordinator.stop()
    response = node.ask(ListTransactionsRequest(), ListTransactionsResponse, 2)
    assert response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


# WriteTxnMarkers


def make_marker(
    producer_id: int, *partitions: tuple[str, int], commit: bool = False, version: int = 0
) -> WritableTxnMarker:
    return WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=3,
        transaction_result=commit,
        topics=[WritableTxnMarkerTopic(name=name, partition_indexes=[index]) for name, index in partitions],
        coordinator_epoch=4,
        transaction_version=version,
    )


def write_markers(
    node: TransactionNode, version: int, *markers: WritableTxnMarker
) -> dict[int, dict[tuple[str, int], int]]:
    response = node.ask(WriteTxnMarkersRequest(markers=list(markers)), WriteTxnMarkersResponse, version)
    return {
        marker.producer_id: {
            (topic.name, result.partition_index): result.error_code
            for topic in marker.topics
            for result in topic.partitions
        }
        for marker in response.markers
    }


@pytest.mark.parametrize("version", range(3))
def test_markers_are_written(version: int) -> None:
    node = TransactionNode()
    node.world.partitions.deleted.add(P1)
    node.world.refuse(("u", 0), ErrorCode.TRANSACTION_COORDINATOR_FENCED)
    codes = write_markers(
        node, version, make_marker(7, P0, P1, P0), make_marker(8, P0, commit=True, version=2), make_marker(7, ("u", 0))
    )
    fenced = ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert codes == {7: {P0: 0, P1: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ("u", 0): fenced}, 8: {P0: 0}}
    assert node.world.markers() == [(7, 3, False), (8, 3, True)]
    first, second = node.world.partitions.all[P0].markers
    assert (first.coordinator_epoch, first.transaction_version) == (4, 0)
    assert second.transaction_version == (2 if version == 2 else 0)


def test_no_markers_are_fine() -> None:
    assert write_markers(TransactionNode(), 1) == {}
    assert write_markers(TransactionNode(), 1, make_marker(7), make_marker(8, P0)) == {8: {P0: 0}}


def test_many_markers_leave_others_their_turn() -> None:
    clock = TiringClock()
    node = TransactionNode(clock)
    clock.look_s = TURN_SECONDS / 10
    waiting = node.send(WriteTxnMarkersRequest(markers=[make_marker(number, P0) for number in range(30)]), 2)
    assert is_waiting(waiting) and node.holds_next
    assert 1 < len(node.world.markers()) < 20
    node.world.turn(20)
    assert len(node.read(waiting, WriteTxnMarkersResponse, 2).markers) == len(node.world.markers()) == 30


def test_an_answer_waits_for_every_marker() -> None:
    node = TransactionNode()
    node.world.partitions.all[P0].hold = True
    waiting = node.send(WriteTxnMarkersRequest(markers=[make_marker(7, P0, P1)]), 2)
    assert is_waiting(waiting)
    node.world.partitions.all[P0].release()
    (result,) = node.read(waiting, WriteTxnMarkersResponse, 2).markers
    assert {partition.error_code for topic in result.topics for partition in topic.partitions} == {0}


def test_the_group_coordinator_learns_of_an_administrators_markers() -> None:
    node = TransactionNode()
    write_markers(node, 1, make_marker(7, ("__consumer_offsets", 2), commit=True))
    assert node.world.ended == [(2, 7, True)]
