"""Elections on request, and when leadership goes back to the preferred replicas."""

from __future__ import annotations

import pytest

from kafkacompat.cluster.decisions.leader_balance import (
    ElectionType,
    balance_leaders,
    elect_leaders,
    find_imbalance,
)
from kafkacompat.cluster.decisions.situation import DeletionProgress, Situation, TopicPartition
from kafkacompat.metadata.image import PartitionImage
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.cluster.decisions.clusters import (
    NOBODY,
    T0,
    T1,
    U0,
    build_draft,
    partition,
    stateless,
    summarize,
)

THREE = (1, 2, 3)
PREFERRED, UNCLEAN = ElectionType.PREFERRED, ElectionType.UNCLEAN


@pytest.mark.parametrize(
    ("kind", "before", "code", "after"),
    [
        (PREFERRED, partition(2, THREE, THREE), None, (1, 6, THREE)),
        (PREFERRED, partition(1, THREE, THREE), ErrorCode.ELECTION_NOT_NEEDED, (1, 5, THREE)),
        (PREFERRED, partition(2, THREE, (2, 3)), ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, (2, 5, (2, 3))),
        (PREFERRED, partition(2, (9, 2), (9, 2)), ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, (2, 5, (9, 2))),
        (PREFERRED, stateless((9,)), ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, (-1, -1, ())),
        (UNCLEAN, partition(-1, (9, 2), (9,)), None, (2, 6, (2,))),
        (UNCLEAN, partition(9, (9, 2, 3), (9, 3)), None, (3, 6, (3,))),
        (UNCLEAN, partition(2, (9, 2), (2,)), ErrorCode.ELECTION_NOT_NEEDED, (2, 5, (2,))),
        (UNCLEAN, partition(-1, (9,), (9,)), ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, (-1, 5, (9,))),
    ],
)
def test_elections_on_request(
    kind: ElectionType, before: PartitionImage, code: ErrorCode | None, after: tuple[int, int, tuple[int, ...]]
) -> None:
    draft = build_draft(THREE, t=[before])
    results, changed = elect_leaders(draft, NOBODY, kind, [T0])
    problem = results[T0]
    assert (problem and problem.code) == code
    assert summarize(draft) == after
    assert changed == ((T0,) if code is None else ())
    assert draft.topics["t"].partitions[0].is_recovering == (kind == UNCLEAN and code is None and after[0] == 2)


def test_a_request_for_all_returns_only_what_needed_an_election() -> None:
    draft = build_draft(
        THREE,
        t=[partition(2, THREE, THREE), partition(1, THREE, THREE), partition(2, (9, 2), (2,))],
        u=[partition(2, THREE, THREE)],
    )
    situation = Situation(deletions={"u": DeletionProgress()})
    results, changed = elect_leaders(draft, situation, PREFERRED)
    assert {key: problem and problem.code for key, problem in results.items()} == {
        T0: None,
        TopicPartition("t", 2): ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        U0: ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
    assert changed == (T0,)


def test_unknown_partitions_are_answered() -> None:
    draft = build_draft(THREE, t=[partition(2, THREE, THREE)])
    results, _ = elect_leaders(draft, NOBODY, PREFERRED, [T1, U0, T0, T0])
    assert [problem and problem.code for problem in results.values()] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2 + [
        None
    ]


@pytest.mark.parametrize(("elsewhere", "is_imbalanced"), [(0, False), (1, False), (2, True), (10, True)])
def test_a_broker_is_imbalanced_above_the_percentage(elsewhere: int, is_imbalanced: bool) -> None:
    partitions = [partition(2 if index < elsewhere else 1, THREE, THREE) for index in range(10)]
    draft = build_draft(THREE, t=partitions)
    assert len(find_imbalance(draft, NOBODY, 10)) == (elsewhere if is_imbalanced else 0)


def test_leaderships_go_back_where_the_preferred_replica_is_in_sync() -> None:
    draft = build_draft(
        THREE,
        t=[partition(2, THREE, THREE), partition(2, THREE, (2, 3)), partition(-1, (9,), (9,)), stateless((8,))],
        u=[partition(2, THREE, THREE)],
    )
    situation = Situation(deletions={"u": DeletionProgress()})
    assert balance_leaders(draft, situation, 10) == (T0,)
    assert summarize(draft) == (1, 6, THREE)
    assert balance_leaders(draft, situation, 10) == ()


def test_a_percentage_of_zero_allows_no_leadership_elsewhere() -> None:
    draft = build_draft(THREE, t=[partition(2, THREE, THREE), *[partition(1, THREE, THREE)] * 200])
    assert balance_leaders(draft, NOBODY, 0) == (T0,)


def test_a_broker_that_shuts_down_gets_no_leaderships_back() -> None:
    draft = build_draft(THREE, t=[partition(2, THREE, THREE)])
    assert balance_leaders(draft, Situation(shutting_down=frozenset({1})), 10) == ()
