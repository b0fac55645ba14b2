"""Transactions over several brokers: markers for partitions of other leaders, and coordinators and leaders that move."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.transactions.state import Ending
from kafkacompat.transactions.topic import TRANSACTION_TOPIC
from kafkacompat.wire.apis.add_partitions_to_txn import AddPartitionsToTxnRequest
from kafkacompat.wire.apis.write_txn_markers import WriteTxnMarkersRequest
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.groups.support import take_response
from tests.kafkacompat.transactions.cluster import Cluster

NONE = ErrorCode.NONE
A, B, C = ("t", 0), ("t", 1), ("t", 2)
LEADERS = {A: 1, B: 2, C: 3}
COORDINATED = (TRANSACTION_TOPIC, 0)


def markers_sent(cluster: Cluster) -> list[tuple[int, list[int]]]:
    """Return the brokers that WriteTxnMarkers was sent to, and the producer ids in each request."""
    return [
        (node_id, [marker.producer_id for marker in request.markers])
        for node_id, request in cluster.requests
        if isinstance(request, WriteTxnMarkersRequest)
    ]


# Markers


@pytest.mark.parametrize("ending", list(Ending))
def test_a_transaction_ends_in_the_partitions_of_all_leaders(ending: Ending) -> None:
    cluster = Cluster(LEADERS)
    producer = cluster.begin("x", A, B, C)
    assert cluster.end("x", producer, ending) is NONE
    ended = [["x"], ["x"], ["x"]]
    if ending is Ending.COMMIT:
        assert cluster.committed(A, B, C) == ended
        assert cluster.state("x") == "CompleteCommit"
    else:
        assert [cluster.partitions.all[partition].aborted for partition in (A, B, C)] == ended
        assert cluster.state("x") == "CompleteAbort"
    assert sorted(markers_sent(cluster)) == [(2, [100]), (3, [100])]


def test_markers_that_come_while_a_request_is_under_way_share_the_next_one() -> None:
    cluster = Cluster(LEADERS)
    producers = {name: cluster.begin(name, B) for name in ("x", "y", "z")}
    cluster.held.add(2)
    for name, producer in producers.items():
        assert cluster.end(name, producer) is NONE
    assert markers_sent(cluster) == [(2, [100])]
    cluster.network.pop().deliver()
    assert markers_sent(cluster) == [(2, [100]), (2, [101, 102])]
    cluster.release()
    assert cluster.committed(B) == [["x", "y", "z"]]
    assert {cluster.state(name) for name in producers} == {"CompleteCommit"}


def test_a_leader_that_changes_in_the_middle_gets_the_marker_from_the_next_attempt() -> None:
    cluster = Cluster(LEADERS)
    producer = cluster.begin("x", A, B, C)
    cluster.held.add(2)
    assert cluster.end("x", producer) is NONE
    cluster.elect(B, 3)
    cluster.network.pop().deliver()
    assert cluster.committed(A, B, C) == [["x"], [], ["x"]]
    cluster.wait(3)
    assert cluster.state("x") == "PrepareCommit"
    cluster.publish()
    cluster.release()
    cluster.wait(6)
    assert cluster.committed(A, B, C) == [["x"], ["x"], ["x"]]
    assert cluster.state("x") == "CompleteCommit"
    assert markers_sent(cluster)[-1] == (3, [100])


def test_a_broker_that_does_not_answer_holds_up_its_own_partitions_only() -> None:
    cluster = Cluster(LEADERS)
    producer = cluster.begin("x", A, B, C)
    cluster.held.add(2)
    cluster.down.add(3)
    assert cluster.end("x", producer) is NONE
    cluster.wait(1)
    cluster.down.clear()
    cluster.wait(5)
    assert cluster.committed(A, B, C) == [["x"], [], ["x"]]
    assert [node_id for node_id, _ in markers_sent(cluster)].count(2) == 1
    cluster.network.pop().lose()
    cluster.held.clear()
    cluster.wait(1)
    assert cluster.state("x") == "CompleteCommit"


def test_a_partition_without_a_leader_gets_its_marker_when_it_has_one() -> None:
    cluster = Cluster(LEADERS)
    producer = cluster.begin("x", B)
    cluster.elect(B, -1)
    cluster.publish()
    cluster.end("x", producer)
    cluster.wait(20)
    assert (cluster.state("x"), markers_sent(cluster)) == ("PrepareCommit", [])
    cluster.elect(B, 2)
    cluster.publish()
    cluster.wait(6)
    assert cluster.state("x") == "CompleteCommit"


def test_a_partition_is_deleted_when_the_clusters_metadata_says_so() -> None:
    cluster = Cluster(LEADERS)
    producer = cluster.begin("x", A, C)
    cluster.delete(C)
    cluster.publish()
    cluster.end("x", producer)
    cluster.wait(30)
    assert cluster.state("x") == "PrepareCommit"
    cluster.known_deleted.add(C)
    cluster.wait(6)
    assert cluster.state("x") == "CompleteCommit"


# Coordinators that move


def test_a_coordinator_that_moves_in_the_middle_of_a_commit_ends_it_on_the_other_broker() -> None:
    cluster = Cluster(LEADERS)
    producer = cluster.begin("x", A, B, C)
    cluster.held = {2, 3}
    assert cluster.end("x", producer) is NONE
    cluster.elect(COORDINATED, 2)
    cluster.publish()
    assert cluster.brokers[1].coordinator.describe("x").error_code == ErrorCode.NOT_COORDINATOR
    assert cluster.state("x") == "PrepareCommit"
    late = [sent for sent in cluster.network if sent.node_id == 2]
    cluster.network = [sent for sent in cluster.network if sent.node_id == 3]
    cluster.release()
    cluster.wait(6)
    assert cluster.state("x") == "CompleteCommit"
    assert cluster.committed(A, B, C) == [["x"], ["x"], ["x"]]
    assert cluster.partitions.all[B].coordinator_epochs[100] == 1
    # The old coordinator's marker is fenced, and the next transaction is not ended by it.
    again = take_response(cluster.coordinator.initialize("x", 60_000, None)).producer
    take_response(cluster.coordinator.add_partitions("x", again, [B], 0))
    cluster.partitions.all[B].write("next", *again)
    for sent in late:
        sent.deliver()
    assert len(cluster.partitions.all[B].open) == 1
    assert cluster.committed(B) == [["x"]]


def test_a_coordinator_that_was_replaced_stops_to_send_markers() -> None:
    cluster = Cluster(LEADERS)
    producer = cluster.begin("x", B)
    cluster.down.add(2)
    cluster.end("x", producer)
    cluster.wait(1)
    assert markers_sent(cluster)
    cluster.elect(COORDINATED, 3)
    cluster.brokers[3].coordinator.stop()
    count = len(markers_sent(cluster))
    cluster.wait(30)
    assert len(markers_sent(cluster)) == count


def test_a_client_of_the_old_coordinator_is_sent_away_and_may_go_on_at_the_new_one() -> None:
    cluster = Cluster(LEADERS)
    producer = cluster.begin("x", A, B)
    cluster.elect(COORDINATED, 3)
    old = cluster.brokers[1].coordinator
    assert take_response(old.end("x", producer, Ending.COMMIT, 0)).error_code is ErrorCode.NOT_COORDINATOR
    assert cluster.end("x", producer) is NONE
    cluster.publish()
    cluster.wait(1)
    assert cluster.committed(A, B) == [["x"], ["x"]]


def test_a_decision_whose_append_fails_as_the_leadership_is_lost_is_undone() -> None:
    cluster = Cluster(LEADERS)
    producer = cluster.begin("x", A)
    cluster.log.hold = True
    ending = cluster.brokers[1].coordinator.end("x", producer, Ending.COMMIT, 0)
    cluster.log.hold = False
    (held,) = cluster.log.held
    cluster.elect(COORDINATED, 2)
    held.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert take_response(ending).error_code is ErrorCode.NOT_COORDINATOR
    assert cluster.state("x") == "Ongoing"
    assert cluster.end("x", producer, Ending.ABORT) is NONE
    assert cluster.partitions.all[A].aborted == ["x"]


def test_a_later_epoch_of_the_same_leader_loads_nothing_and_marks_its_markers() -> None:
    cluster = Cluster(LEADERS)
    producer = cluster.begin("x", B)
    cluster.down.add(2)
    cluster.end("x", producer)
    cluster.log.batches.clear()
    cluster.coordinator.on_election(0, 5)
    assert cluster.state("x") == "PrepareCommit"
    cluster.coordinator.on_election(0, 4)
    cluster.down.clear()
    cluster.wait(2)
    assert cluster.partitions.all[B].coordinator_epochs[100] == 5


def test_a_coordinator_serves_once_its_records_are_committed() -> None:
    cluster = Cluster(LEADERS)
    producer = cluster.begin("x", B)
    cluster.held.add(2)
    cluster.end("x", producer)
    committed = cluster.log.uncommitted[0] = Deferred()
    cluster.elect(COORDINATED, 3)
    cluster.publish()
    assert cluster.coordinator.describe("x").error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    count = len(cluster.requests)
    cluster.wait(5)
    assert len(cluster.requests) == count
    committed.callback(None)
    cluster.release()
    cluster.wait(1)
    assert cluster.state("x") == "CompleteCommit"


# Verification


def test_a_transaction_is_verified_by_its_coordinator_on_another_broker() -> None:
    cluster = Cluster(LEADERS)
    producer = cluster.begin("x", A, B)
    broker = cluster.brokers[2]
    codes = {B: NONE, C: ErrorCode.TRANSACTION_ABORTABLE}
    assert take_response(broker.verify(producer, B, C, name="x")) == codes
    fenced = producer._replace(producer_epoch=producer.producer_epoch + 1)
    assert take_response(broker.verify(fenced, B, name="x")) == {B: ErrorCode.INVALID_PRODUCER_EPOCH}
    unknown = producer._replace(producer_id=7)
    assert take_response(broker.verify(unknown, B, name="x")) == {B: ErrorCode.INVALID_PRODUCER_ID_MAPPING}


def test_a_partition_is_added_by_the_coordinator_on_another_broker() -> None:
    cluster = Cluster(LEADERS)
    producer = take_response(cluster.coordinator.initialize("x", 60_000, None)).producer
    assert take_response(cluster.brokers[2].verify(producer, B, name="x", add=True)) == {B: NONE}
    assert cluster.state("x") == "Ongoing"
    assert take_response(cluster.brokers[2].verify(producer, B, name="x")) == {B: NONE}


def test_the_coordinators_own_broker_asks_itself() -> None:
    cluster = Cluster(LEADERS)
    producer = cluster.begin("x", A)
    assert take_response(cluster.brokers[1].verify(producer, A, name="x")) == {A: NONE}
    assert cluster.requests == []


def test_transactions_that_begin_while_a_request_is_under_way_share_the_next_one() -> None:
    cluster = Cluster(LEADERS)
    producers = {name: cluster.begin(name, B) for name in ("x", "y", "z")}
    cluster.held.add(1)
    asked = [cluster.brokers[2].verify(producer, B, name=name) for name, producer in producers.items()]
    asked.append(cluster.brokers[2].verify(producers["y"], C, name="y"))
    while cluster.network:
        cluster.network.pop().deliver()
    names = [
        [transaction.transactional_id for transaction in request.transactions]
        for _, request in cluster.requests
        if isinstance(request, AddPartitionsToTxnRequest)
    ]
    assert names == [["x"], ["y", "z"], ["y"]]
    assert [take_response(answer) for answer in asked] == [
        {B: NONE},
        {B: NONE},
        {B: NONE},
        {C: ErrorCode.TRANSACTION_ABORTABLE},
    ]


def test_without_a_coordinators_answer_producers_must_retry() -> None:
    cluster = Cluster(LEADERS)
    producer = cluster.begin("x", B)
    cluster.down.add(1)
    assert take_response(cluster.brokers[2].verify(producer, B, name="x")) == {B: ErrorCode.NETWORK_EXCEPTION}
    cluster.down.clear()
    cluster.elect(COORDINATED, 3)
    assert take_response(cluster.brokers[2].verify(producer, B, name="x")) == {B: ErrorCode.NOT_COORDINATOR}
    cluster.leaders[COORDINATED] = -1
    cluster.publish()
    assert take_response(cluster.brokers[2].verify(producer, B, name="x")) == {B: ErrorCode.COORDINATOR_NOT_AVAILABLE}
