"""Elections among brokers that start without some of what they had."""

from __future__ import annotations

import pytest

from kafkacompat.cluster.decisions.broker_changes import (
    BrokerDifference,
    handle_broker_changes,
    handle_broker_start,
    handle_replica_answers,
    take_over,
)
from kafkacompat.cluster.decisions.elections import elect_offline
from kafkacompat.cluster.decisions.situation import Situation
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.image import Losses
from tests.kafkacompat.cluster.decisions.clusters import NOBODY, T0, T1, build_draft, partition, summarize

THREE = (1, 2, 3)


def start_with(losses: dict[int, Losses]) -> MetadataDraft:
    """Brokers with these losses, and two partitions without a leader for which all three are in sync."""
    draft = build_draft(THREE, t=[partition(-1, THREE, THREE), partition(-1, THREE, (1,))])
    draft.brokers = {
        node: broker._replace(losses=losses.get(node, Losses()))
        for node, broker in draft.brokers.items()
        if node in losses
    }
    return draft


@pytest.mark.parametrize(
    ("online", "doubtful", "leader", "isr"),
    [
        ([1, 2, 3], [1], 2, (2, 3)),
        ([1, 2, 3], [1, 2], 3, (3,)),
        ([1, 2], [1, 2], 1, (1, 2)),
        ([1], [1], 1, (1,)),
        ([1, 2, 3], [], 1, (1, 2, 3)),
    ],
)
def test_a_doubtful_replica_leads_only_without_another(
    online: list[int], doubtful: list[int], leader: int, isr: tuple[int, ...]
) -> None:
    elected = elect_offline(partition(-1, THREE, THREE), online, doubtful=doubtful)
    assert elected is not None
    assert (elected.leader, elected.in_sync_replicas) == (leader, isr)


def test_a_broker_without_its_last_records_is_the_last_choice_until_there_is_a_leader() -> None:
    draft = start_with({1: Losses(records=True), 2: Losses(), 3: Losses(records=True)})
    decision = handle_broker_start(draft, NOBODY, THREE)
    assert [summarize(draft, key) for key in (T0, T1)] == [(2, 6, (2,)), (1, 6, (1,))]
    assert decision.situation.list_doubtful(T0) == [1, 3]
    assert decision.situation.without_doubts(decision.changed) == NOBODY


@pytest.mark.parametrize("takes_over", [False, True])
def test_a_broker_with_lost_replicas_is_not_elected_before_it_answers(takes_over: bool) -> None:
    draft = start_with({1: Losses(replicas=True)})
    decision = take_over(draft, NOBODY, (), [1]) if takes_over else handle_broker_start(draft, NOBODY, [1])
    assert summarize(draft)[::2] == (-1, THREE)
    answered = handle_replica_answers(draft, decision.situation, 1, failed=[T0], working=[T1])
    assert summarize(draft)[::2] == (-1, THREE)
    assert summarize(draft, T1)[::2] == (1, (1,))
    assert answered.changed == (T1,)
    assert answered.situation == Situation(offline_replicas={1: frozenset([T0])})
    assert answered.stops == ()


def test_a_partition_that_is_led_is_not_doubted() -> None:
    draft = start_with({1: Losses(replicas=True, records=True), 2: Losses()})
    draft.put_partitions("t", [partition(2, THREE, (2,)), partition(2, THREE, (1, 2))._replace(partition=1)])
    decision = handle_broker_start(draft, NOBODY, [1])
    assert decision.situation.list_doubtful(T0) == []
    assert not decision.situation.has_failed_directory(T1, 1)
    assert decision.changed == ()


@pytest.mark.parametrize(
    ("losses", "after"),
    [(Losses(), (1, 6, THREE)), (Losses(records=True), (2, 6, (2, 3))), (None, (2, 6, (2, 3)))],
)
@pytest.mark.parametrize("takes_over", [False, True])
def test_a_leader_that_has_bounced_without_a_loss_leads_on_under_a_new_epoch(
    losses: Losses | None, after: tuple[int, int, tuple[int, ...]], takes_over: bool
) -> None:
    draft = build_draft(THREE, t=[partition(1, THREE, THREE), partition(2, THREE, THREE)])
    draft.brokers = {**draft.brokers, 1: draft.brokers[1]._replace(losses=losses)}
    if takes_over:
        take_over(draft, NOBODY, (), [1])
    else:
        handle_broker_changes(draft, NOBODY, BrokerDifference((), (), (1,)))
    assert summarize(draft) == after
    assert summarize(draft, T1) == ((2, 5, THREE) if losses == Losses() else (2, 6, (2, 3)))
