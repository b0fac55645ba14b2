"""AlterPartition: which in-sync sets a leader may request, and what it is answered."""

from __future__ import annotations

import pytest

from kafkacompat.cluster.decisions.in_sync_changes import InSyncChange, InSyncRequest, change_in_sync_sets
from kafkacompat.cluster.decisions.situation import Situation
from kafkacompat.metadata.image import PartitionImage
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.kafkacompat.cluster.decisions.clusters import NOBODY, T0, T1, build_draft, partition, stateless

THREE = (1, 2, 3)
LED = partition(1, THREE, (1, 2))
RECOVERING = partition(1, THREE, (1,), recovering=True)


def request(*changes: InSyncChange, version: int = 3, broker: int = 1, epoch: int = 101) -> InSyncRequest:
    return InSyncRequest(broker, epoch, version, changes)


def change(
    *isr: int, leader_epoch: int = 5, partition_epoch: int = 7, epochs: tuple[int, ...] = (), recovering: bool = False
) -> InSyncChange:
    return InSyncChange("t", 0, leader_epoch, partition_epoch, isr, epochs, recovering)


@pytest.mark.parametrize(
    ("before", "wanted", "isr"),
    [
        (LED, change(1, 2, 3), THREE),
        (LED, change(1), (1,)),
        (LED, change(1, 2, 3, epochs=(101, 102, 103)), THREE),
        (LED, change(1, 2, 3, epochs=(101, -1, 103)), THREE),
        (RECOVERING, change(1, 2), (1, 2)),
        (RECOVERING, change(1), (1,)),
    ],
)
def test_a_leader_changes_its_in_sync_set(before: PartitionImage, wanted: InSyncChange, isr: tuple[int, ...]) -> None:
    draft = build_draft(THREE, t=[before])
    results, changed = change_in_sync_sets(draft, NOBODY, request(wanted))
    after = before._replace(in_sync_replicas=isr, partition_epoch=8, is_recovering=False)
    assert results == (after,) == draft.topics["t"].partitions
    assert changed == (T0,)


@pytest.mark.parametrize(
    ("before", "wanted"),
    [
        (LED, change(1, 2)),
        (LED, change(2, 1)),
        (LED, change(1, 2, partition_epoch=6)),
        (RECOVERING, change(1, recovering=True)),
        # Nothing is checked of a change that is in effect: broker 9 is not alive.
        (partition(1, (1, 9), (1, 9)), change(1, 9)),
    ],
)
def test_a_change_that_is_in_effect_is_answered_as_made(before: PartitionImage, wanted: InSyncChange) -> None:
    draft = build_draft(THREE, t=[before])
    assert change_in_sync_sets(draft, NOBODY, request(wanted)) == ((before,), ())


@pytest.mark.parametrize(
    ("before", "wanted", "code"),
    [
        (LED, change(1, 2, 3, partition_epoch=8), ErrorCode.NOT_CONTROLLER),
        (LED, change(1, 2, 3, leader_epoch=6), ErrorCode.NOT_CONTROLLER),
        (LED, change(1, 2, 3, leader_epoch=4, partition_epoch=8), ErrorCode.NOT_CONTROLLER),
        (LED, change(1, 2, 3, leader_epoch=4), ErrorCode.FENCED_LEADER_EPOCH),
        (LED, change(1, 2, 3, leader_epoch=4, partition_epoch=6), ErrorCode.FENCED_LEADER_EPOCH),
        (LED, change(1, 2, 3, partition_epoch=6), ErrorCode.INVALID_UPDATE_VERSION),
        (LED, change(1, 9, partition_epoch=6), ErrorCode.INVALID_UPDATE_VERSION),
        (RECOVERING, change(1, 2, recovering=True), ErrorCode.INVALID_REQUEST),
        (LED, change(1, recovering=True), ErrorCode.INVALID_REQUEST),
        (partition(2, THREE, (1, 2)), change(1), ErrorCode.INVALID_REQUEST),
        (LED, change(2), ErrorCode.INVALID_REQUEST),
        (LED, change(), ErrorCode.INVALID_REQUEST),
        (LED, change(1, 1), ErrorCode.INVALID_REQUEST),
        (LED, change(1, 4), ErrorCode.INVALID_REQUEST),
        (partition(1, (1, 9), (1,)), change(1, 9), ErrorCode.INELIGIBLE_REPLICA),
        (LED, change(1, 2, 3, epochs=(101, 102, 99)), ErrorCode.INELIGIBLE_REPLICA),
        (stateless(THREE), change(1), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_checks_are_made_in_kafkas_order(before: PartitionImage, wanted: InSyncChange, code: ErrorCode) -> None:
    draft = build_draft(THREE, t=[before])
    assert change_in_sync_sets(draft, NOBODY, request(wanted)) == ((code,), ())
    assert draft.topics["t"].partitions == (before,)


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (0, ErrorCode.OPERATION_NOT_ATTEMPTED),
        (1, ErrorCode.OPERATION_NOT_ATTEMPTED),
        (2, ErrorCode.INELIGIBLE_REPLICA),
        (3, ErrorCode.INELIGIBLE_REPLICA),
    ],
)
@pytest.mark.parametrize(
    "situation", [Situation(shutting_down=frozenset({3})), Situation(offline_replicas={3: frozenset({T0})})]
)
def test_brokers_that_shut_down_or_lost_the_replica_cannot_join(
    situation: Situation, version: int, code: ErrorCode
) -> None:
    draft = build_draft(THREE, t=[LED])
    assert change_in_sync_sets(draft, situation, request(change(1, 2, 3), version=version)).results == (code,)


def test_a_follower_may_join_a_leader_that_shuts_down() -> None:
    draft = build_draft(THREE, t=[LED])
    results = change_in_sync_sets(draft, Situation(shutting_down=frozenset({1})), request(change(1, 2, 3))).results
    assert results == draft.topics["t"].partitions != (LED,)


@pytest.mark.parametrize(("broker", "epoch"), [(1, 100), (1, 102), (9, 109), (1, -1)])
def test_a_broker_of_another_epoch_is_refused_as_a_whole(broker: int, epoch: int) -> None:
    draft = build_draft(THREE, t=[LED])
    with pytest.raises(KafkaError) as problem:
        change_in_sync_sets(draft, NOBODY, request(change(1), broker=broker, epoch=epoch))
    assert problem.value.code == ErrorCode.STALE_BROKER_EPOCH


def test_each_change_has_its_own_answer_and_topics_may_be_named_by_id() -> None:
    draft = build_draft(THREE, t=[LED, LED])
    uuid = draft.topics["t"].topic_id
    changes = [
        InSyncChange(uuid, 1, 5, 7, (1,)),
        InSyncChange(b"?" * 16, 0, 5, 7, (1,)),
        InSyncChange(uuid, 2, 5, 7, (1,)),
        InSyncChange("other", 0, 5, 7, (1,)),
        InSyncChange(uuid, -1, 5, 7, (1,)),
    ]
    results, changed = change_in_sync_sets(draft, NOBODY, request(*changes))
    assert results == (
        LED._replace(partition=1, in_sync_replicas=(1,), partition_epoch=8),
        ErrorCode.UNKNOWN_TOPIC_ID,
        *[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 3,
    )
    assert changed == (T1,)
