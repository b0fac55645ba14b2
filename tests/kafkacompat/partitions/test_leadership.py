"""A leader's view of its replicas, by the rules of Kafka 3.9."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafkacompat.partitions.leadership import UNKNOWN, InSyncSet, LeaderState, ReplicaState

NOW, LAG = 100_000, 30_000
ALIVE = {1: 11, 2: 12, 3: 13}


def leading(*in_sync: int, start: int = 0, replicas: tuple[int, ...] = (1, 2, 3)) -> LeaderState:
    return LeaderState.begin(1, replicas, in_sync, 5, epoch_start_offset=start, now_ms=NOW)


def fetch(state: LeaderState, replica: int, offset: int, *, end: int = 10, at_ms: int = NOW, epoch: int = -1) -> None:
    state.update_follower(replica, offset, 0, at_ms, end, epoch)


def high_watermark(state: LeaderState, current: int = 0, end: int = 10, *, at_ms: int = NOW, least: int = 1) -> int:
    return state.high_watermark(
        current, end, at_ms, min_insync_replicas=least, lag_time_max_ms=LAG, broker_epochs=ALIVE.get
    )


# When a follower was caught up


@pytest.mark.parametrize(
    ("before", "offset", "leader_end", "caught_up_ms"),
    [
        (ReplicaState(leader_end_offset=4, fetched_ms=NOW - 500, caught_up_ms=7), 10, 10, NOW),
        (ReplicaState(leader_end_offset=4, fetched_ms=NOW - 500, caught_up_ms=7), 12, 10, NOW),
        (ReplicaState(leader_end_offset=4, fetched_ms=NOW - 500, caught_up_ms=7), 4, 10, NOW - 500),
        (ReplicaState(leader_end_offset=4, fetched_ms=NOW - 500, caught_up_ms=7), 9, 10, NOW - 500),
        (ReplicaState(leader_end_offset=4, fetched_ms=NOW - 500, caught_up_ms=7), 3, 10, 7),
        (ReplicaState(leader_end_offset=4, fetched_ms=5, caught_up_ms=7), 4, 10, 7),
        (ReplicaState(leader_end_offset=4, fetched_ms=5, caught_up_ms=NOW + 1), 10, 10, NOW + 1),
    ],
)
def test_a_follower_was_caught_up_when_it_had_what_the_leader_had(
    before: ReplicaState, offset: int, leader_end: int, caught_up_ms: int
) -> None:
    after = before.after_fetch(offset, 2, NOW, leader_end, 12)
    assert after == ReplicaState(offset, 2, leader_end, NOW, caught_up_ms, 12, before.fetched_ms)


def test_the_leaders_end_of_the_last_fetch_never_goes_back() -> None:
    before = ReplicaState(leader_end_offset=20)
    assert before.after_fetch(5, 0, NOW, 10, UNKNOWN).leader_end_offset == 20


@pytest.mark.parametrize(
    ("end_offset", "late_ms", "expected"), [(10, LAG + 1, True), (9, LAG, True), (9, LAG + 1, False), (-1, 0, True)]
)
def test_a_follower_is_caught_up_at_the_end_or_for_a_while(end_offset: int, late_ms: int, expected: bool) -> None:
    state = ReplicaState(end_offset, caught_up_ms=NOW - late_ms)
    assert state.is_caught_up(10, NOW, LAG) is expected


# The begin of a leadership


def test_a_new_leader_knows_no_end_and_gives_the_in_sync_set_its_time() -> None:
    state = leading(1, 2, start=7)
    assert state.followers == {
        2: ReplicaState(leader_end_offset=UNKNOWN, caught_up_ms=NOW, heard_ms=NOW),
        3: ReplicaState(leader_end_offset=UNKNOWN),
    }
    assert state.in_sync == InSyncSet(frozenset((1, 2)), 5)
    assert state.epoch_start_offset == 7


def test_a_leader_elected_again_keeps_what_it_knows() -> None:
    before = leading(1, 2)
    fetch(before, 2, 8, epoch=12)
    fetch(before, 3, 3)
    after = LeaderState.begin(1, (1, 2, 3, 4), (1, 2), 6, epoch_start_offset=10, now_ms=NOW + 9, before=before)
    assert after.followers[2] == ReplicaState(8, 0, 10, NOW + 9, NOW + 9, 12, NOW + 9)
    assert after.followers[3] == ReplicaState(3, 0, 10, 0, 0, UNKNOWN)
    assert after.followers[4].end_offset == UNKNOWN


def test_a_reassignment_keeps_the_followers_that_stay() -> None:
    state = leading(1, 2)
    fetch(state, 2, 8)
    state.in_sync = state.in_sync.propose(frozenset((1, 2, 3)))
    state.reassign((1, 2, 4), (1, 2), 6)
    assert list(state.followers) == [2, 4]
    assert state.followers[2].end_offset == 8
    assert state.in_sync == InSyncSet(frozenset((1, 2)), 6)


def test_a_state_that_is_known_already_does_not_end_a_proposal() -> None:
    state = leading(1, 2)
    state.in_sync = pending = state.in_sync.propose(frozenset((1, 2, 3)))
    state.reassign((1, 2, 3), (1, 2), 5)
    assert state.in_sync is pending


# The high watermark


@pytest.mark.parametrize(
    ("in_sync", "proposed", "ends", "expected"),
    [
        ((1,), None, {}, 10),
        ((1, 2), None, {}, 0),
        ((1, 2), None, {2: 6}, 6),
        ((1, 2), None, {2: 12}, 10),
        ((1, 2, 3), None, {2: 6}, 0),
        ((1, 2, 3), None, {2: 6, 3: 4}, 4),
        # A proposed replica counts before it is committed, and a leaving one until that is committed.
        ((1, 2), (1, 2, 3), {2: 6, 3: 4}, 4),
        ((1, 2, 3), (1, 2), {2: 6, 3: 4}, 4),
    ],
)
def test_the_high_watermark_is_what_both_sets_have(
    in_sync: tuple[int, ...], proposed: tuple[int, ...] | None, ends: dict[int, int], expected: int
) -> None:
    state = leading(*in_sync)
    if proposed is not None:
        state.in_sync = state.in_sync.propose(frozenset(proposed))
    long_ago = NOW - 2 * LAG
    for replica, end in ends.items():
        fetch(state, replica, end, at_ms=long_ago, end=99)
    state.followers = {replica: known._replace(caught_up_ms=0) for replica, known in state.followers.items()}
    assert high_watermark(state) == expected


def test_the_high_watermark_never_goes_back() -> None:
    state = leading(1, 2)
    fetch(state, 2, 4)
    assert high_watermark(state, current=7) == 7


@pytest.mark.parametrize(
    ("least", "in_sync", "expected"), [(2, (1,), 0), (2, (1, 2), 6), (3, (1, 2), 0), (9, (1, 2, 3), 6), (9, (1, 2), 0)]
)
def test_the_high_watermark_stands_still_under_min_insync_replicas(
    least: int, in_sync: tuple[int, ...], expected: int
) -> None:
    state = leading(*in_sync)
    fetch(state, 2, 6)
    fetch(state, 3, 6)
    assert high_watermark(state, least=least) == expected
    assert state.has_enough_in_sync(least) is bool(expected)


def test_a_proposed_replica_does_not_help_to_reach_min_insync_replicas() -> None:
    state = leading(1)
    fetch(state, 2, 10)
    assert state.propose_expansion(2, 0, ALIVE.get) == frozenset(
        (
            1,
            2,
        )
    )
    assert high_watermark(state, least=2) == 0


@pytest.mark.parametrize(
    ("at_ms", "epoch", "expected"),
    [
        (NOW, UNKNOWN, 4),  # caught up a moment ago: about to join
        (NOW, 12, 4),
        (NOW, 11, 10),  # a fetch of its broker's earlier life
        (NOW - LAG - 1, UNKNOWN, 10),  # lags for too long
    ],
)
def test_the_high_watermark_waits_for_a_replica_about_to_join(at_ms: int, epoch: int, expected: int) -> None:
    state = leading(1)
    fetch(state, 2, 4, end=4, at_ms=at_ms, epoch=epoch)
    assert high_watermark(state) == expected


def test_the_high_watermark_does_not_wait_for_a_dead_replica() -> None:
    state = leading(1, replicas=(1, 4))
    fetch(state, 4, 4, end=4)
    assert high_watermark(state) == 10


# Growing and shrinking


@pytest.mark.parametrize(
    ("offset", "watermark", "start", "epoch", "joins"),
    [
        (5, 5, 5, UNKNOWN, True),
        (5, 5, 5, 12, True),
        (4, 5, 0, UNKNOWN, False),  # behind the high watermark
        (4, 3, 5, UNKNOWN, False),  # behind the start of the leader epoch
        (5, 5, 5, 11, False),  # of an earlier life
        (5, 5, 5, 13, False),  # of a life that the metadata does not know yet
    ],
)
def test_a_follower_joins_at_the_high_watermark(
    offset: int, watermark: int, start: int, epoch: int, joins: bool
) -> None:
    state = leading(1, start=start)
    fetch(state, 2, offset, epoch=epoch)
    assert state.propose_expansion(2, watermark, ALIVE.get) == (frozenset((1, 2)) if joins else None)
    assert (state.in_sync.proposed is not None) is joins


def test_nothing_joins_that_is_dead_or_in_the_set_or_while_a_proposal_is_under_way() -> None:
    state = leading(1, 2)
    for replica in (2, 3):
        fetch(state, replica, 10)
    assert state.propose_expansion(2, 0, ALIVE.get) is None
    assert state.propose_expansion(3, 0, {1: 11}.get) is None
    assert state.propose_expansion(3, 0, ALIVE.get) == frozenset(
        (
            1,
            2,
            3,
        )
    )
    assert state.propose_expansion(3, 0, ALIVE.get) is None


def test_who_has_not_fetched_does_not_join() -> None:
    assert leading(1).propose_expansion(2, 0, ALIVE.get) is None


def test_followers_that_lag_leave_together() -> None:
    state = leading(1, 2, 3)
    assert state.propose_shrink(NOW + LAG, LAG, 10) is None
    fetch(state, 3, 10, at_ms=NOW)
    assert state.propose_shrink(NOW + LAG + 1, LAG, 10) == frozenset(
        (
            1,
            3,
        )
    )  # 3 has everything, however long ago
    state.reject()
    assert state.propose_shrink(NOW + LAG + 1, LAG, 11) == frozenset((1,))
    assert state.propose_shrink(NOW + LAG + 1, LAG, 11) is None  # under way


def test_a_member_that_is_no_replica_leaves() -> None:
    state = leading(1, 2, 9)
    assert state.propose_shrink(NOW, LAG, 10) == frozenset(
        (
            1,
            2,
        )
    )


def test_a_commit_ends_the_proposal_unless_it_is_old() -> None:
    state = leading(1, 2)
    fetch(state, 3, 10)
    state.propose_expansion(3, 0, ALIVE.get)
    assert not state.commit((1,), 4)
    assert state.in_sync.counted == {1, 2, 3}
    assert state.commit((1, 2, 3), 6)
    assert state.in_sync == InSyncSet(frozenset((1, 2, 3)), 6)


def test_a_rejection_leaves_the_committed_set() -> None:
    state = leading(1, 2)
    fetch(state, 3, 10)
    state.propose_expansion(3, 0, ALIVE.get)
    state.reject()
    assert state.in_sync == InSyncSet(frozenset((1, 2)), 5)


def test_a_proposal_carries_the_epochs_of_the_last_fetches() -> None:
    state = leading(1, 2)
    fetch(state, 2, 1, epoch=12)
    assert state.list_broker_epochs((1, 2, 3)) == {1: UNKNOWN, 2: 12, 3: UNKNOWN}


@pytest.mark.parametrize(("epoch", "stale"), [(UNKNOWN, False), (11, True), (12, False), (13, False)])
def test_a_fetch_of_an_earlier_life_is_stale(epoch: int, stale: bool) -> None:
    assert leading(1).is_stale(2, epoch, ALIVE.get) is stale
    assert not leading(1).is_stale(2, epoch, {1: 11}.get)


# What else depends on the followers


def test_the_low_watermark_is_that_of_the_live_replicas() -> None:
    state = leading(1, 2, replicas=(1, 2, 4))
    assert state.low_watermark(5, ALIVE.get) == UNKNOWN
    state.update_follower(2, 10, 3, NOW, 10, UNKNOWN)
    assert state.low_watermark(5, ALIVE.get) == 3
    state.update_follower(2, 10, 8, NOW, 10, UNKNOWN)
    assert state.low_watermark(5, ALIVE.get) == 5


@pytest.mark.parametrize(
    ("rack", "racks", "offset", "expected"),
    [
        ("a", {1: "a", 2: "a", 3: "a"}, 5, UNKNOWN),  # the leader is near
        ("b", {1: "a", 2: "b", 3: "b"}, 5, 3),  # of two, the one with more
        ("b", {1: "a", 2: "b", 3: None}, 5, 2),
        ("b", {1: "a", 2: "b"}, 7, UNKNOWN),  # it does not have the offset yet
        ("b", {1: "a", 2: "b"}, 0, UNKNOWN),  # any more
        ("c", {1: "a", 2: "b", 3: "b"}, 5, UNKNOWN),
        ("", {1: "a", 2: "", 3: ""}, 5, UNKNOWN),
        ("d", {1: "a", 4: "d"}, 5, UNKNOWN),  # not in sync
    ],
)
def test_a_consumer_reads_from_a_replica_in_its_rack(
    rack: str, racks: dict[int, str | None], offset: int, expected: int
) -> None:
    state = leading(1, 2, 3, replicas=(1, 2, 3, 4))
    for replica, end in ((2, 6), (3, 9), (4, 10)):
        state.update_follower(replica, end, 1, NOW, 10, UNKNOWN)
    assert state.find_nearest_replica(offset, rack, racks) == expected


def test_of_equals_the_one_that_caught_up_last_is_read() -> None:
    state = leading(1, 2, 3)
    fetch(state, 3, 10, at_ms=NOW)
    fetch(state, 2, 10, at_ms=NOW + 1)
    assert state.find_nearest_replica(5, "b", {1: "a", 2: "b", 3: "b"}) == 2


class Leadership(RuleBasedStateMachine):
    """A leader, followers that fetch in any order, and a controller that commits, rejects or loses proposals."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = NOW
        self.end = 0
        self.watermark = 0
        self.state = leading(1, 2)
        self.ends = dict.fromkeys((2, 3), 0)
        self.applied: frozenset[int] = frozenset((1, 2))
        self.least = 1
        self.alive = dict(ALIVE)

    def advance(self) -> None:
        before = self.watermark
        self.watermark = self.state.high_watermark(
            before,
            self.end,
            self.now_ms,
            min_insync_replicas=self.least,
            lag_time_max_ms=LAG,
            broker_epochs=self.alive.get,
        )
        assert self.watermark >= before
        if self.watermark > before:
            assert len(self.state.in_sync.committed) >= min(self.least, 3)
            # Whichever of the sets the controller has, every member has what became visible.
            for replica in (self.state.in_sync.counted | self.applied) - {1}:
                assert self.ends[replica] >= self.watermark

    @rule(count=st.integers(1, 5))
    def append(self, count: int) -> None:
        self.end += count
        self.advance()

    @rule(replica=st.sampled_from((2, 3)), count=st.integers(0, 8), knows_epoch=st.booleans())
    def fetch(self, replica: int, count: int, knows_epoch: bool) -> None:
        """A follower says what it has, after it got some more."""
        self.ends[replica] = min(self.end, self.ends[replica] + count)
        epoch = ALIVE[replica] if knows_epoch else UNKNOWN
        self.state.update_follower(replica, self.ends[replica], 0, self.now_ms, self.end, epoch)
        self.state.propose_expansion(replica, self.watermark, self.alive.get)
        self.advance()

    @rule(passed_ms=st.sampled_from((1, LAG // 2, LAG + 1)))
    def pass_time(self, passed_ms: int) -> None:
        self.now_ms += passed_ms
        self.state.propose_shrink(self.now_ms, LAG, self.end)
        self.advance()

    @rule(least=st.integers(1, 3))
    def configure(self, least: int) -> None:
        self.least = least
        self.advance()

    @rule(replica=st.sampled_from((2, 3)))
    def die_or_live(self, replica: int) -> None:
        if self.alive.pop(replica, None) is None:
            self.alive[replica] = ALIVE[replica]
        self.advance()

    @precondition(lambda self: self.state.in_sync.proposed is not None)
    @rule()
    def apply(self) -> None:
        """The controller applies the proposal; the leader does not know yet."""
        assert self.state.in_sync.proposed is not None
        self.applied = self.state.in_sync.proposed
        self.advance()

    @precondition(lambda self: self.state.in_sync.proposed is not None and self.applied == self.state.in_sync.proposed)
    @rule()
    def confirm(self) -> None:
        assert self.state.commit(self.applied, self.state.in_sync.partition_epoch + 1)
        self.advance()

    @precondition(lambda self: self.applied == self.state.in_sync.committed)
    @rule()
    def reject(self) -> None:
        self.state.reject()
        self.advance()

    @rule()
    def elect_again(self) -> None:
        """The same leader in a new epoch, with the set that the controller has."""
        epoch = self.state.in_sync.partition_epoch + 1
        self.state = LeaderState.begin(
            1,
            (1, 2, 3),
            self.applied,
            epoch,
            epoch_start_offset=self.end,
            now_ms=self.now_ms,
            before=self.state,
        )
        self.advance()

    @invariant()
    def the_high_watermark_is_in_the_log(self) -> None:
        assert 0 <= self.watermark <= self.end
        assert 1 in self.state.in_sync.counted

    @invariant()
    def the_applied_set_counts(self) -> None:
        assert self.applied <= self.state.in_sync.counted
        assert all(self.ends[replica] >= self.watermark for replica in self.applied - {1})


TestLeadership = Leadership.TestCase
TestLeadership.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
