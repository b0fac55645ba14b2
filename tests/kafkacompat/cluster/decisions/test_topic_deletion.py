"""The deletion of topics, which waits for brokers that are down and for reassignments."""

from __future__ import annotations

from dataclasses import replace

from kafkacompat.cluster.decisions.broker_changes import (
    handle_broker_failure,
    handle_broker_start,
    handle_replica_answers,
)
from kafkacompat.cluster.decisions.reassignment import complete_reassignments
from kafkacompat.cluster.decisions.situation import Decision, DeletionProgress, Replica, ReplicaStop, Situation
from kafkacompat.cluster.decisions.topic_deletion import explain_wait, queue_deletions, record_answers, resume_deletions
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.cluster.decisions.clusters import NOBODY, T0, T1, U0, brokers, build_draft, partition

DELETED = {T0: ErrorCode.NONE, T1: ErrorCode.NONE}


def two_partitions(*nodes: int) -> MetadataDraft:
    return build_draft(nodes, t=[partition(1, (1, 2), (1, 2))] * 2, u=[partition(1, (1, 2), (1, 2))])


def with_brokers(draft: MetadataDraft, *nodes: int) -> MetadataDraft:
    return MetadataDraft(replace(draft.build_image(), brokers=brokers(nodes)))


def test_a_topic_goes_when_all_replicas_are_deleted() -> None:
    draft = two_partitions(1, 2)
    draft.put_config((ResourceType.TOPIC, "t"), {"retention.ms": "1"})
    queued = queue_deletions(draft, NOBODY, ["t"])
    assert queued.stops == tuple(ReplicaStop(node, key, delete=True) for key in (T0, T1) for node in (1, 2))
    assert queued.finished == () and queued.situation.is_deleting("t")
    first = record_answers(draft, queued.situation, 1, DELETED)
    assert not first.stops and not first.finished and "t" in draft.topics
    second = record_answers(draft, first.situation, 2, {T0: ErrorCode.NONE})
    assert second.finished == () and explain_wait(draft, second.situation, "t") is None
    third = record_answers(draft, second.situation, 2, {T1: ErrorCode.NONE})
    assert third == Decision(NOBODY, finished=("t",))
    assert list(draft.topics) == ["u"] and draft.configs == {}


def test_a_topic_that_does_not_exist_is_finished_at_once() -> None:
    draft = two_partitions(1, 2)
    assert queue_deletions(draft, NOBODY, ["other"]) == Decision(NOBODY, finished=("other",))


def test_a_topic_is_queued_once() -> None:
    draft = two_partitions(1, 2)
    queued = queue_deletions(draft, NOBODY, ["t", "t"])
    assert len(queued.stops) == 4
    assert queue_deletions(draft, queued.situation, ["t"]) == Decision(queued.situation)


def test_a_deletion_waits_for_a_broker_that_is_down() -> None:
    draft = two_partitions(1)
    queued = queue_deletions(draft, NOBODY, ["t"])
    assert {stop.broker_id for stop in queued.stops} == {1}
    answered = record_answers(draft, queued.situation, 1, DELETED)
    assert answered.finished == ()
    assert explain_wait(draft, answered.situation, "t") == "replicas on broker(s) 2 could not be deleted"
    draft = with_brokers(draft, 1, 2)
    started = handle_broker_start(draft, answered.situation, [2])
    assert started.stops == (ReplicaStop(2, T0, delete=True), ReplicaStop(2, T1, delete=True))
    assert started.changed == ()
    assert record_answers(draft, started.situation, 2, DELETED).finished == ("t",)


def test_a_broker_that_fails_while_it_deletes_is_asked_again() -> None:
    draft = two_partitions(1, 2)
    queued = queue_deletions(draft, NOBODY, ["t"])
    answered = record_answers(draft, queued.situation, 1, DELETED)
    draft = with_brokers(draft, 1)
    failed = handle_broker_failure(draft, answered.situation, [2])
    assert failed.situation.deletions["t"].pending == frozenset()
    # An answer that was on its way counts no more: the broker may have come back with its old files.
    assert record_answers(draft, failed.situation, 2, DELETED).finished == ()
    draft = with_brokers(draft, 1, 2)
    assert len(handle_broker_start(draft, failed.situation, [2]).stops) == 2


def test_an_error_is_tried_again_when_a_broker_starts() -> None:
    draft = two_partitions(1, 2)
    queued = queue_deletions(draft, NOBODY, ["t"])
    answered = record_answers(draft, queued.situation, 1, {T0: ErrorCode.KAFKA_STORAGE_ERROR, T1: ErrorCode.NONE})
    answered = record_answers(draft, answered.situation, 2, DELETED)
    assert not answered.stops and not answered.finished
    assert resume_deletions(draft, answered.situation).stops == (ReplicaStop(1, T0, delete=True),)


def test_a_replica_in_a_failed_directory_cannot_be_deleted() -> None:
    draft = two_partitions(1, 2)
    queued = queue_deletions(draft, NOBODY, ["t"])
    failed = handle_replica_answers(draft, queued.situation, 1, failed=[T0])
    assert not failed.changed and not failed.stops
    assert failed.situation.deletions["t"].pending == {Replica(0, 2), Replica(1, 1), Replica(1, 2)}
    assert resume_deletions(draft, failed.situation).stops == ()
    assert explain_wait(draft, failed.situation, "t") == "replicas on broker(s) 1 could not be deleted"


def test_a_deletion_waits_for_the_end_of_a_reassignment() -> None:
    moving = partition(1, (2, 1), (1, 2), adding=(2,), removing=(1,))
    draft = build_draft((1, 2), t=[moving, partition(1, (1,), (1,))])
    queued = queue_deletions(draft, NOBODY, ["t"])
    assert queued == Decision(Situation(deletions={"t": DeletionProgress()}))
    assert explain_wait(draft, queued.situation, "t") == "a reassignment is in progress"
    assert not queued.situation.is_deleting("t") and queued.situation.is_queued("t")
    assert complete_reassignments(draft, queued.situation) == (T0,)
    resumed = resume_deletions(draft, queued.situation, {key.topic for key in (T0,)})
    assert resumed.stops == (ReplicaStop(2, T0, delete=True), ReplicaStop(1, T1, delete=True))


def test_answers_for_other_topics_are_ignored() -> None:
    draft = two_partitions(1, 2)
    queued = queue_deletions(draft, NOBODY, ["t"])
    assert record_answers(draft, queued.situation, 1, {U0: ErrorCode.NONE}) == Decision(queued.situation)
    assert record_answers(draft, NOBODY, 1, DELETED) == Decision(NOBODY)
