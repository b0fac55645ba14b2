"""What happens to partitions when brokers come, go, shut down or lose a log directory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafkacompat.cluster.decisions.broker_changes import (
    BrokerDifference,
    compare_brokers,
    elect_leaderless,
    handle_broker_changes,
    handle_broker_failure,
    handle_broker_start,
    handle_replica_answers,
    shut_down_broker,
    take_over,
)
from kafkacompat.cluster.decisions.situation import (
    Decision,
    DeletionProgress,
    Replica,
    ReplicaStop,
    Situation,
    TopicPartition,
)
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.image import PartitionImage
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.kafkacompat.cluster.decisions.clusters import (
    NOBODY,
    T0,
    T1,
    U0,
    allow_unclean,
    brokers,
    build_draft,
    partition,
    stateless,
    summarize,
)

THREE = (1, 2, 3)
BOUNCE = BrokerDifference((), (), (1,))


def test_brokers_start_fail_and_bounce() -> None:
    difference = compare_brokers(brokers({1: 5, 2: 6, 3: 7}), brokers({2: 6, 3: 9, 4: 8}))
    assert difference == BrokerDifference(started=(4,), failed=(1,), bounced=(3,))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (partition(1, THREE, THREE), (2, 6, (2, 3))),
        (partition(2, THREE, THREE), (2, 6, (2, 3))),
        (partition(1, THREE, (1, 3)), (3, 6, (3,))),
        (partition(1, THREE, (1,)), (-1, 6, (1,))),
        (partition(1, (1,), (1,)), (-1, 6, (1,))),
        # Nothing depends on broker 1.
        (partition(2, THREE, (2, 3)), (2, 5, (2, 3))),
        (partition(2, (2, 3), (2, 3)), (2, 5, (2, 3))),
        (stateless((1,)), (-1, -1, ())),
        (stateless((1, 3)), (3, 0, (3,))),
    ],
)
def test_a_broker_fails(before: PartitionImage, after: tuple[int, int, tuple[int, ...]]) -> None:
    draft = build_draft((2, 3), t=[before])
    decision = handle_broker_failure(draft, NOBODY, [1])
    assert summarize(draft) == after
    is_changed = after[1] != before.leader_epoch
    assert decision == Decision(NOBODY, (T0,) if is_changed else ())
    assert draft.topics["t"].partitions[0].partition_epoch == before.partition_epoch + is_changed


def test_all_of_an_in_sync_set_fail_at_once_and_any_of_them_may_lead_later() -> None:
    draft = build_draft((3,), t=[partition(1, THREE, (1, 2))])
    handle_broker_failure(draft, NOBODY, [1, 2])
    assert summarize(draft) == (-1, 6, (1, 2))
    draft = build_draft((2, 3), t=draft.topics["t"].partitions)
    handle_broker_start(draft, NOBODY, [2])
    assert summarize(draft) == (2, 7, (2,))


def test_the_last_in_sync_replica_alone_leads_when_it_is_back() -> None:
    draft = build_draft((2, 3), t=[partition(-1, THREE, (1,))])
    assert handle_broker_start(draft, NOBODY, [3]).changed == ()
    draft = build_draft(THREE, t=[partition(-1, THREE, (1,))])
    assert handle_broker_start(draft, NOBODY, [1]).changed == (T0,)
    assert summarize(draft) == (1, 6, (1,))


@pytest.mark.parametrize("level", ["topic", "cluster", "default"])
def test_an_unclean_election_where_it_is_allowed(level: str) -> None:
    draft = build_draft((2, 3), t=[partition(1, THREE, (1,))])
    situation = NOBODY
    if level == "topic":
        allow_unclean(draft, "t")
    elif level == "cluster":
        draft.put_config((ResourceType.BROKER, ""), {"unclean.leader.election.enable": "true"})
    else:
        situation = replace(NOBODY, unclean_by_default=True)
    handle_broker_failure(draft, situation, [1])
    assert summarize(draft) == (2, 6, (2,))
    assert draft.topics["t"].partitions[0].is_recovering


def test_a_topic_may_forbid_what_the_cluster_allows() -> None:
    draft = build_draft((2, 3), t=[partition(1, THREE, (1,))])
    draft.put_config((ResourceType.TOPIC, "t"), {"unclean.leader.election.enable": "false"})
    handle_broker_failure(draft, replace(NOBODY, unclean_by_default=True), [1])
    assert summarize(draft) == (-1, 6, (1,))


def test_partitions_without_a_leader_get_one_when_unclean_elections_become_allowed() -> None:
    draft = build_draft((2,), t=[partition(-1, (1, 2), (1,))], u=[partition(-1, (1, 2), (1,))])
    allow_unclean(allow_unclean(draft, "t"), "u")
    assert elect_leaderless(draft, NOBODY, ["t"]) == (T0,)
    assert (summarize(draft), summarize(draft, U0)) == ((2, 6, (2,)), (-1, 5, (1,)))
    assert elect_leaderless(draft, NOBODY) == (U0,)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (partition(1, (1, 2), (1, 2)), (2, 6, (2,))),
        (partition(2, (1, 2), (1, 2)), (2, 6, (2,))),
        # The only member leads again, under another epoch, and no other replica is elected uncleanly meanwhile.
        (partition(1, (1, 2), (1,)), (1, 7, (1,))),
        (partition(1, (1,), (1,)), (1, 7, (1,))),
    ],
)
def test_a_bounce_is_a_failure_and_a_start(before: PartitionImage, after: tuple[int, int, tuple[int, ...]]) -> None:
    draft = allow_unclean(build_draft({1: 200, 2: 102}, t=[before]), "t")
    decision = handle_broker_changes(draft, NOBODY, BOUNCE)
    assert summarize(draft) == after
    assert decision.changed == (T0,)
    # The store writes the state once, whatever happened to it in between.
    assert draft.topics["t"].partitions[0].partition_epoch == 8


def test_a_broker_that_bounces_while_the_other_member_fails_leads() -> None:
    draft = build_draft({1: 200}, t=[partition(2, (1, 2), (2, 1))])
    handle_broker_changes(draft, NOBODY, BrokerDifference((), (2,), (1,)))
    assert summarize(draft) == (1, 7, (1,))


def test_a_broker_that_starts_forgets_its_failed_directories_and_its_shutdown() -> None:
    situation = Situation(shutting_down=frozenset({1, 2}), offline_replicas={1: frozenset({T0}), 2: frozenset({U0})})
    draft = build_draft((1, 2), t=[partition(-1, (1,), (1,))])
    decision = handle_broker_start(draft, situation, [1])
    assert decision.situation == Situation(frozenset({2}), {2: frozenset({U0})})
    assert summarize(draft) == (1, 6, (1,))


def test_topics_that_are_deleted_have_no_elections() -> None:
    draft = build_draft((2,), t=[partition(1, (1, 2), (1, 2))], u=[partition(1, (1, 2), (1, 2))])
    pending = frozenset({Replica(0, 1), Replica(0, 2)})
    situation = Situation(deletions={"t": DeletionProgress(has_started=True, pending=pending)})
    decision = handle_broker_failure(draft, situation, [1])
    assert decision.changed == (U0,)
    assert decision.situation.deletions["t"].pending == {Replica(0, 2)}


def test_a_failed_log_directory_costs_its_replicas_only() -> None:
    draft = build_draft(
        (1, 2), t=[partition(1, (1, 2), (1, 2)), partition(1, (1, 2), (1, 2))], u=[partition(2, (2, 1), (2, 1))]
    )
    decision = handle_replica_answers(draft, NOBODY, 1, failed=[T0, U0], working=[T1])
    assert [summarize(draft, key) for key in (T0, T1, U0)] == [(2, 6, (2,)), (1, 5, (1, 2)), (2, 6, (2,))]
    assert decision.changed == (T0, U0)
    assert decision.stops == (ReplicaStop(1, T0), ReplicaStop(1, U0))
    assert decision.situation.offline_replicas == {1: {T0, U0}}
    again = handle_replica_answers(draft, decision.situation, 1, failed=[T0], working=[U0])
    assert again == Decision(NOBODY.with_offline_replicas(1, [T0]))


def test_a_replica_in_a_failed_directory_is_not_elected() -> None:
    draft = build_draft((2, 3), t=[partition(1, THREE, THREE)])
    handle_broker_failure(draft, Situation(offline_replicas={2: frozenset({T0})}), [1])
    assert summarize(draft) == (3, 6, (3,))


def test_a_shutdown_moves_leaderships_and_stops_followers() -> None:
    draft = build_draft(
        THREE,
        t=[partition(1, THREE, THREE), partition(2, THREE, THREE)],
        u=[partition(1, (1,), (1,)), partition(1, (1, 2), (1,)), partition(2, (1, 2), (2,)), stateless((1, 2))],
    )
    decision, remaining = shut_down_broker(draft, NOBODY, 1, 101)
    states = [summarize(draft, key) for key in (T0, T1, U0, TopicPartition("u", 1), TopicPartition("u", 2))]
    assert states == [(2, 6, (2, 3)), (2, 6, (2, 3)), (1, 5, (1,)), (1, 5, (1,)), (2, 5, (2,))]
    assert decision.stops == (ReplicaStop(1, T1), ReplicaStop(1, TopicPartition("u", 2)))
    assert decision.situation == Situation(shutting_down=frozenset({1}))
    assert remaining == (TopicPartition("u", 1),)


def test_a_shutdown_is_tried_again_until_nothing_remains() -> None:
    draft = build_draft((1, 2), t=[partition(1, (1, 2), (1,))])
    decision, remaining = shut_down_broker(draft, NOBODY, 1)
    assert remaining == (T0,)
    draft = build_draft((1, 2), t=[partition(1, (1, 2), (1, 2))])
    decision, remaining = shut_down_broker(draft, decision.situation, 1)
    assert (summarize(draft), remaining) == ((2, 6, (2,)), ())


def test_brokers_that_shut_down_hand_nothing_to_each_other() -> None:
    draft = build_draft(THREE, t=[partition(1, THREE, THREE)])
    shut_down_broker(draft, Situation(shutting_down=frozenset({2})), 1)
    assert summarize(draft) == (3, 6, (3,))


def test_a_leader_that_shuts_down_is_not_replaced_uncleanly_when_another_broker_fails() -> None:
    draft = allow_unclean(build_draft((1, 2), t=[partition(1, THREE, (1, 3))]), "t")
    handle_broker_failure(draft, Situation(shutting_down=frozenset({1})), [3])
    assert summarize(draft) == (1, 6, (1,))


@pytest.mark.parametrize(
    ("broker", "epoch", "code"), [(1, 100, ErrorCode.STALE_BROKER_EPOCH), (9, -1, ErrorCode.BROKER_NOT_AVAILABLE)]
)
def test_a_shutdown_is_refused(broker: int, epoch: int, code: ErrorCode) -> None:
    draft = build_draft((1, 2), t=[partition(1, (1, 2), (1, 2))])
    with pytest.raises(KafkaError) as problem:
        shut_down_broker(draft, NOBODY, broker, epoch)
    assert problem.value.code == code
    assert summarize(draft) == (1, 5, (1, 2))


def test_a_new_controller_settles_what_happened_without_one() -> None:
    draft = build_draft(
        (2, 3),
        t=[partition(1, THREE, THREE), partition(2, THREE, THREE), stateless((3, 2))],
        u=[partition(3, (3, 2), (3, 2), removing=(2,))],
        d=[partition(2, (2,), (2,))],
    )
    decision = take_over(draft, NOBODY, ["d", "gone"])
    keys = (T0, T1, TopicPartition("t", 2), U0)
    assert [summarize(draft, key) for key in keys] == [(2, 6, (2, 3)), (2, 6, (2, 3)), (3, 0, (3, 2)), (3, 6, (3,))]
    assert draft.topics["u"].partitions[0].replicas == (3,)
    assert decision.changed == keys
    assert decision.finished == ("gone",)
    assert decision.stops == (ReplicaStop(2, TopicPartition("d", 0), delete=True),)


def test_a_restart_of_the_whole_cluster_gives_each_partition_a_new_epoch() -> None:
    draft = build_draft(
        (1, 2), t=[partition(1, (1, 2, 3), THREE), partition(2, (1, 2), (2,)), partition(1, (1,), (1,))]
    )
    decision = take_over(allow_unclean(draft, "t"), NOBODY, bounced=[1, 2])
    states = [summarize(draft, TopicPartition("t", index)) for index in range(3)]
    assert states == [(1, 7, (1, 2)), (2, 7, (2,)), (1, 7, (1,))]
    assert len(decision.changed) == 3


def test_a_new_controller_elects_uncleanly_what_has_no_other_leader() -> None:
    draft = allow_unclean(build_draft((2,), t=[partition(1, (1, 2), (1,))]), "t")
    take_over(draft, NOBODY)
    assert summarize(draft) == (2, 7, (2,))


def test_the_draft_counts_one_write_of_each_state() -> None:
    before = build_draft((1, 2, 3), t=[partition(1, THREE, THREE), partition(3, THREE, THREE)]).build_image()
    draft = MetadataDraft(replace(before, brokers=brokers((3,))))
    handle_broker_failure(draft, NOBODY, [1])
    handle_broker_failure(draft, NOBODY, [2])
    first, second = draft.topics["t"].partitions
    assert (first.leader, first.in_sync_replicas, first.partition_epoch) == (3, (3,), 8)
    assert (second.leader_epoch, second.partition_epoch) == (7, 8)
