"""Operations, faults and times without service of a history."""

from __future__ import annotations

from kafkacompat.history.events import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Acknowledged,
    Commit,
    CommitAcknowledged,
    End,
    Ended,
    Event,
    Faulted,
    Finished,
    HistoryPartition,
    Positioned,
    Read,
    Restarted,
    Send,
    Worked,
)
from kafkacompat.history.index import History, index_history
from kafkacompat.history.service import count_faults, count_operations, find_longest_gaps

PLACE, OTHER = HistoryPartition("records", 0), HistoryPartition("records", 1)
COPIES = HistoryPartition("copies", 0)
S = 1_000_000_000


def index(*events: Event) -> History:
    """A history of these events, of which every partition was read to its end."""
    ends = [
        Finished(100 * S, f"last-{isolation}.0", isolation, place, 0, 0)
        for isolation in (READ_COMMITTED, READ_UNCOMMITTED)
        for place in (PLACE, OTHER, COPIES)
    ]
    return index_history(sorted([*events, *ends], key=lambda event: event.time_ns))


def value(number: int, sent_s: float, acknowledged_s: float | None, place: HistoryPartition = PLACE) -> list[Event]:
    events: list[Event] = [Send(int(sent_s * S), "producer-0.0", number, place)]
    if acknowledged_s is not None:
        events.append(Acknowledged(int(acknowledged_s * S), "producer-0.0", number, number))
    return events


def test_values_transactions_and_commits_are_operations() -> None:
    history = index(
        *value(0, 1, 2),
        *value(1, 2, None),
        Send(S, "transactional-0.0", 0, PLACE, 1),
        End(2 * S, "transactional-0.0", 1, True),
        Ended(3 * S, "transactional-0.0", 1, True),
        Send(4 * S, "transactional-0.0", 1, PLACE, 2),
        Commit(S, "member-0.0", 0, "members", PLACE, 1),
        CommitAcknowledged(2 * S, "member-0.0", 0),
        Commit(3 * S, "member-0.0", 1, "members", PLACE, 2),
    )
    # Four values, two transactions, two commits; without a response: three values, one transaction, one commit.
    assert count_operations(history) == (8, 3, 5)


def test_faults_are_counted_by_kind() -> None:
    history = index(
        Restarted(3 * S, "run.0", 2 * S),
        Faulted(5 * S, "chaos.0", "paused", "broker 1", 4 * S),
        Faulted(7 * S, "chaos.0", "cut off", "broker 2", 6 * S),
        Faulted(9 * S, "chaos.0", "paused", "broker 3", 8 * S),
    )
    assert count_faults(history) == {"broker killed": 1, "cut off": 1, "paused": 2}
    assert count_faults(index(*value(0, 1, 2))) == {}


def test_a_gap_is_one_partitions_while_another_is_served() -> None:
    events = [*value(0, 1, 1), *value(1, 5, 5), *value(2, 6, 6)]
    other = [event for number in range(3, 12) for event in value(number, number - 2, number - 2, OTHER)]
    assert find_longest_gaps(index(*events, *other)) == {"writers": 4.0, "readers": 0.0, "groups": 0.0}


def test_the_times_at_the_beginning_and_at_the_end_of_the_work_count() -> None:
    events = [*value(0, 4, 4), *value(1, 5, 5)]
    assert find_longest_gaps(index(*events, Worked(7 * S, "run.0", S)))["writers"] == 3.0
    assert find_longest_gaps(index(*events, Worked(12 * S, "run.0", 3 * S)))["writers"] == 7.0
    # What is acknowledged when the clients stop is no part of the work.
    late = [*events, *value(2, 6, 30)]
    assert find_longest_gaps(index(*late, Worked(12 * S, "run.0", 3 * S)))["writers"] == 7.0


def test_copies_count_for_their_group_alone() -> None:
    history = index(
        *value(0, 1, 1),
        *value(1, 2, 2),
        Send(S, "copier-0.0", 0, COPIES, 1, ("records", 0, 0)),
        Acknowledged(2 * S, "copier-0.0", 0, 0),
        Commit(2 * S, "copier-0.0", 0, "copiers", PLACE, 1, 1),
        End(3 * S, "copier-0.0", 1, True),
        Ended(3 * S, "copier-0.0", 1, True),
        Send(4 * S, "copier-0.0", 1, COPIES, 2, ("records", 0, 1)),
        Acknowledged(9 * S, "copier-0.0", 1, 1),
        Commit(9 * S, "copier-0.0", 1, "copiers", PLACE, 2, 2),
        End(9 * S, "copier-0.0", 2, True),
        Ended(9 * S, "copier-0.0", 2, True),
    )
    assert find_longest_gaps(history) == {"writers": 1.0, "readers": 0.0, "groups": 6.0}


def test_readers_have_a_gap_for_each_isolation_level() -> None:
    def read(at_s: int, client: str, isolation: str, offset: int) -> Event:
        return Read(at_s * S, client, isolation, PLACE, [(offset, f"producer-0.0:{offset}")])

    history = index(
        *value(0, 1, 1),
        *value(1, 1, 1),
        Positioned(S, "reader-0.0", PLACE, 0),
        read(2, "reader-0.0", READ_UNCOMMITTED, 0),
        read(3, "reader-0.0", READ_UNCOMMITTED, 1),
        read(2, "reader-1.0", READ_COMMITTED, 0),
        read(10, "reader-1.0", READ_COMMITTED, 1),
    )
    assert find_longest_gaps(history)["readers"] == 8.0
