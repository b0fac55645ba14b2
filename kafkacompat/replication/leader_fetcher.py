"""Fetching from one leader: rounds of requests, with one request in flight.

A round asks for the ends of epochs and for offsets where partitions need them, then fetches all partitions that are ready,
and changes their logs. The next round begins when these changes are done. A log that takes long does not hold up the
others: after ``replica.fetch.wait.max.ms`` the next round begins without its partition.

Appends with acks=all to partitions that are in sync wait for the next round. While there are such appends, partitions that
catch up take small pieces, so that the rounds stay short.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from twisted.internet.defer import Deferred

from kafkacompat.replication.fetch_state import DELAYED, FETCHING, OUT_OF_RANGE, TRUNCATING, FetchState, find_error
from kafkacompat.replication.follower_session import LOST_SESSION_ERRORS, FetchPosition, FollowerSession
from kafkacompat.replication.leader_queries import (
    EARLIEST,
    LATEST,
    LeaderOffset,
    build_epoch_request,
    build_offset_request,
    read_epoch_answers,
    read_offset_answers,
)
from kafkacompat.replication.partitions_by_state import PartitionsByState
from kafkacompat.replication.rest import Rest
from kafkacompat.timers import next_turn, take_steps, yield_in_turns
from kafkacompat.wire.apis.fetch import FetchRequest, FetchResponse, PartitionData, ReplicaState
from kafkacompat.wire.apis.list_offsets import ListOffsetsResponse
from kafkacompat.wire.apis.offset_for_leader_epoch import EpochEndOffset, OffsetForLeaderEpochResponse
from kafkacompat.wire.schema import Request, Response

if TYPE_CHECKING:
    from kafkacompat.partitions.replication_quota import ReplicationQuota
    from kafkacompat.replication.followed_partition import FollowedPartition
    from kafkacompat.replication.follower import PartitionKey, Sender
    from kafkacompat.replication.log_changes import LogChange
    from kafkacompat.replication.partition_fetch import PartitionFetch
    from kafkacompat.replication.settings import FetchSettings
    from kafkacompat.timers import Clock

log = logging.getLogger(__name__)

AnyResponse = TypeVar("AnyResponse", bound=Response)

PARTITIONS_A_QUERY = 1000
"""Partitions in one OffsetForLeaderEpoch or ListOffsets request; the leader answers it in one turn."""

SHORT_ROUND_BYTES = 512 << 10
"""What all partitions that catch up fetch in a round together, while partitions that are in sync get data."""
LEAST_PIECE_BYTES = 16 << 10
BUSY_S = 1.0
"""How long after its last data a partition that is in sync keeps the rounds short."""


class FetcherStoppedError(Exception):
    """The fetcher was stopped while it waited for a response."""


class LeaderFetcher:
    """Fetches some of a leader's partitions.

    ``broker_epoch`` returns this broker's current epoch, -1 for none (KIP-903).
    """

    def __init__(
        self,
        leader_id: int,
        sender: Sender,
        settings: FetchSettings,
        clock: Clock,
        quota: ReplicationQuota,
        broker_epoch: Callable[[], int],
    ) -> None:
        self.leader_id = leader_id
        self.request_count = 0
        """Fetch requests sent."""
        self._sender = sender
        self._settings = settings
        self._clock = clock
        self._quota = quota
        self._broker_epoch = broker_epoch
        self._session = FollowerSession(self._find_max_bytes)
        self._partitions = PartitionsByState()
        self._throttled: frozenset[PartitionKey] = frozenset()
        # At first nobody knows which partitions are in sync.
        self._short_until_s = clock.seconds() + BUSY_S
        self._rest = Rest(clock)
        self._in_flight: Deferred[Response] | None = None
        self._is_failing = False
        self._is_running = False
        self._is_stopped = False

    def __repr__(self) -> str:
        return f"<fetcher from node {self.leader_id}, {len(self._partitions)} partitions>"

    # Partitions come and go

    def add(self, followed: FollowedPartition) -> None:
        """Follow a partition; its fetch state is WAITING."""
        self._partitions.add(followed)
        if followed.is_busy:
            followed.when_idle().addCallback(lambda _: self._begin(followed))
        else:
            self._begin(followed)

    def _begin(self, followed: FollowedPartition) -> None:
        if self._partitions.has(followed):
            self._decide(followed, followed.fetch.begin, set())
            self._start()

    def remove(self, followed: FollowedPartition) -> None:
        """Follow a partition no longer; answers that are still to come change nothing."""
        if self._partitions.has(followed):
            self._partitions.remove(followed)
            self._session.note_change(followed.key)

    def stop(self) -> None:
        """Send nothing more, and drop the request in flight."""
        self._is_stopped = True
        self._partitions.clear()
        if self._in_flight is not None:
            self._in_flight.cancel()
        self._rest.end()

    def _place(self, followed: FollowedPartition, *, is_last: bool = True) -> None:
        """File a partition under its new state, after the others there; a partition that got no data keeps its place."""
        self._session.note_change(followed.key)
        self._partitions.place(followed, is_last=is_last)
        self._rest.end()

    # Rounds

    def _start(self) -> None:
        if not self._is_running:
            self._is_running = True
            Deferred.fromCoroutine(self._run())

    async def _run(self) -> None:
        # Partitions are added one by one: the first round begins after all of them.
        await next_turn(self._clock)
        while not self._is_stopped:
            try:
                await self._take_round()
            except FetcherStoppedError:
                return
            except Exception:
                log.exception("A round of %r failed", self)
                self._session.reset()
                await self._rest.begin(self._settings.backoff_s)

    async def _take_round(self) -> None:
        await self._end_delays()
        if self._partitions.find(TRUNCATING):
            await self._find_divergences()
        if self._partitions.find(OUT_OF_RANGE):
            await self._find_ranges()
        await self._choose_throttled()
        if self._has_fetch():
            await self._fetch()
        elif not (self._is_stopped or self._partitions.find(TRUNCATING) or self._partitions.find(OUT_OF_RANGE)):
            await self._rest.begin(self._find_idle_s())

    async def _end_delays(self) -> None:
        if self._partitions.next_delay_end_s is None:
            return
        async for followed in yield_in_turns(self._clock, self._partitions.pop_delayed(self._clock.seconds())):
            if self._partitions.is_in(followed, DELAYED) and followed.fetch.delayed_until_s <= self._clock.seconds():
                self._decide(followed, followed.fetch.resume, set())

    def _find_idle_s(self) -> float | None:
        """Return how long nothing will have to be done; None for until something happens."""
        delay_end_s = self._partitions.next_delay_end_s
        pauses_s = [] if delay_end_s is None else [delay_end_s - self._clock.seconds()]
        if self._partitions.find(FETCHING):
            pauses_s.append(self._settings.backoff_s)  # all of them are throttled
        return min(pauses_s, default=None)

    async def _wait_for_changes(self, changing: set[FollowedPartition]) -> None:
        """Wait until the logs are changed, but not longer than a fetch may wait for data."""
        ends_s = self._clock.seconds() + self._settings.wait_max_ms / 1000
        while changing and not self._is_stopped:
            remaining_s = ends_s - self._clock.seconds()
            if remaining_s <= 0:
                return
            await self._rest.begin(remaining_s)

    # Requests

    async def _send(self, request: Request, kind: type[AnyResponse]) -> AnyResponse:
        """Send a request; raises FetcherStoppedError, and whatever the sender fails with."""
        if self._is_stopped:
            raise FetcherStoppedError
        self._in_flight = self._sender.send(self.leader_id, request, self._settings.timeout_s)
        try:
            response = await self._in_flight
        except Exception as problem:
            if self._is_stopped:
                raise FetcherStoppedError from problem
            raise
        finally:
            self._in_flight = None
        if self._is_stopped:
            raise FetcherStoppedError
        if not isinstance(response, kind):
            raise TypeError(f"node {self.leader_id} answered with {type(response).__name__}, not {kind.__name__}")
        return response

    async def _back_off(self, problem: object) -> None:
        """Pause after a failed fetch; the first of a row is logged."""
        if not self._is_failing:
            self._is_failing = True
            log.warning(
                "Fetching from node %d failed, trying again every %d ms: %s",
                self.leader_id, self._settings.backoff_ms, problem,
            )  # fmt: skip
        ends_s = self._clock.seconds() + self._settings.backoff_s
        while not self._is_stopped and (remaining_s := ends_s - self._clock.seconds()) > 0:
            await self._rest.begin(remaining_s)

    def _note_success(self) -> None:
        if self._is_failing:
            self._is_failing = False
            log.info("Fetching from node %d works again", self.leader_id)

    # Where the logs diverge

    async def _find_divergences(self) -> None:
        asked = self._partitions.list_first(TRUNCATING, PARTITIONS_A_QUERY)
        request = build_epoch_request(self._settings.node_id, _fetches_of(asked))
        sending = self._send(request, OffsetForLeaderEpochResponse)
        answers = await self._ask(asked, TRUNCATING, sending, read_epoch_answers)
        await self._take_answers(asked, TRUNCATING, answers, _take_epoch)

    async def _find_ranges(self) -> None:
        asked = self._partitions.list_first(OUT_OF_RANGE, PARTITIONS_A_QUERY)
        answers = await self._ask_offsets(asked, LATEST)
        await self._take_answers(asked, OUT_OF_RANGE, answers, _take_leader_end)
        remaining = [followed for followed in asked if self._partitions.is_in(followed, OUT_OF_RANGE)]
        if remaining:
            answers = await self._ask_offsets(remaining, EARLIEST)
            await self._take_answers(remaining, OUT_OF_RANGE, answers, _take_leader_start)

    async def _ask_offsets(self, asked: list[FollowedPartition], timestamp: int) -> dict[PartitionKey, LeaderOffset]:
        request = build_offset_request(self._settings.node_id, _fetches_of(asked), timestamp)
        return await self._ask(asked, OUT_OF_RANGE, self._send(request, ListOffsetsResponse), read_offset_answers)

    async def _ask(
        self,
        asked: list[FollowedPartition],
        state: FetchState,
        sending: Coroutine[Deferred[Any], Any, AnyResponse],
        read: Callable[[AnyResponse], dict[PartitionKey, Any]],
    ) -> dict[PartitionKey, Any]:
        """Return the answers; a partition without one is delayed."""
        problem: object = "the leader did not answer for the partition"
        try:
            answers = read(await sending)
        except FetcherStoppedError:
            raise
        except Exception as failure:
            answers, problem = {}, str(failure)
        async for followed in yield_in_turns(self._clock, asked):
            if followed.key not in answers and self._partitions.is_in(followed, state):
                followed.fetch.delay(problem, self._clock.seconds())
                self._place(followed)
        return answers

    async def _take_answers(
        self,
        asked: list[FollowedPartition],
        state: FetchState,
        answers: dict[PartitionKey, Any],
        take: Callable[[PartitionFetch, Any, float], LogChange | None],
    ) -> None:
        """Give each partition its answer, and change the logs."""
        changing: set[FollowedPartition] = set()
        async for followed in yield_in_turns(self._clock, asked):
            # Another epoch may have begun meanwhile.
            if followed.key in answers and self._partitions.is_in(followed, state):
                self._decide(followed, partial(take, followed.fetch, answers[followed.key]), changing)
        await self._wait_for_changes(changing)

    # Fetching

    async def _choose_throttled(self) -> None:
        """Leave out the partitions that have to pause: throttled ones that are not in sync (KIP-73)."""
        throttled: set[PartitionKey] = set()
        if self._quota.is_exceeded():
            async for followed in yield_in_turns(self._clock, list(self._partitions.find(FETCHING).values())):
                if self._quota.is_throttled(*followed.key) and not followed.fetch.is_in_sync:
                    throttled.add(followed.key)
        for key in self._throttled ^ throttled:
            self._session.note_change(key)
        self._throttled = frozenset(throttled)

    def _has_fetch(self) -> bool:
        fetching = self._partitions.find(FETCHING)
        return any(key not in self._throttled for key in fetching) if self._throttled else bool(fetching)

    async def _fetch(self) -> None:
        request = await self._build_fetch()
        was_full = self._session.is_full
        self.request_count += 1
        try:
            response = await self._send(request, FetchResponse)
        except FetcherStoppedError:
            raise
        except Exception as problem:
            self._session.reset()
            await self._back_off(problem)
            return
        if not self._session.accept(response):
            if was_full or response.error_code not in LOST_SESSION_ERRORS:
                await self._back_off(find_error(response.error_code).name)
            return
        changing: set[FollowedPartition] = set()
        if await self._take_fetched(response, changing, was_full):
            self._note_success()
            await self._wait_for_changes(changing)
        else:
            self._session.reset()
            await self._back_off("the response and the request name different partitions")

    async def _build_fetch(self) -> FetchRequest:
        settings = self._settings
        request = FetchRequest(
            replica_id=settings.node_id,
            replica_state=ReplicaState(replica_id=settings.node_id, replica_epoch=self._broker_epoch()),
            max_wait_ms=settings.wait_max_ms,
            min_bytes=settings.min_bytes,
            max_bytes=settings.response_max_bytes,
        )
        await take_steps(self._clock, self._session.fill(request, self._partitions.find(FETCHING), self._find_position))
        return request

    def _find_position(self, key: PartitionKey) -> FetchPosition | None:
        followed = self._partitions.find(FETCHING).get(key)
        return followed.find_position() if followed is not None and key not in self._throttled else None

    def _find_max_bytes(self, key: PartitionKey) -> int:
        most_bytes = self._settings.partition_max_bytes
        if key not in self._partitions.lagging or self._clock.seconds() >= self._short_until_s:
            return most_bytes
        return min(most_bytes, max(LEAST_PIECE_BYTES, SHORT_ROUND_BYTES // len(self._partitions.lagging)))

    async def _take_fetched(self, response: FetchResponse, changing: set[FollowedPartition], was_full: bool) -> bool:
        """Change the logs; return False if the leader answered for other partitions than those of the session."""
        asked: list[bool] = []
        answers = (
            self._take_answer(self._session.find_topic(topic), data, changing)
            for topic in response.responses
            for data in topic.partitions
        )
        await take_steps(self._clock, map(asked.append, answers))
        return all(asked) and (not was_full or len(asked) == self._session.size)

    def _take_answer(self, topic: str, data: PartitionData, changing: set[FollowedPartition]) -> bool:
        """Change the log of one partition; return False if it is not one of the session's."""
        key = (topic, data.partition_index)
        position = self._session.find_sent(key)
        if position is None:
            return False
        followed = self._partitions.find(FETCHING).get(key)
        if followed is not None and followed.find_position() == position:
            self._take_partition(followed, data, changing)
        else:
            # The partition was stopped meanwhile, or another leader epoch began.
            self._session.note_unheard(key)
        return True

    def _take_partition(
        self, followed: FollowedPartition, data: PartitionData, changing: set[FollowedPartition]
    ) -> None:
        size_bytes = len(data.records) if isinstance(data.records, (bytes, bytearray, memoryview)) else 0
        self._quota.record(*followed.key, size_bytes)
        if size_bytes and followed.fetch.is_in_sync:
            self._short_until_s = self._clock.seconds() + BUSY_S
        self._decide(followed, partial(followed.fetch.answer_fetch, data), changing, got_data=size_bytes > 0)

    # Changes of logs

    def _decide(
        self,
        followed: FollowedPartition,
        decide: Callable[[float], LogChange | None],
        changing: set[FollowedPartition],
        *,
        got_data: bool = True,
    ) -> None:
        """Let the partition decide how its log changes, and change it; a failure concerns this partition only."""
        try:
            change = decide(self._clock.seconds())
        except Exception as problem:
            followed.fetch.fail(problem)
            change = None
        self._change_log(followed, change, changing, got_data=got_data)

    def _change_log(
        self,
        followed: FollowedPartition,
        change: LogChange | None,
        changing: set[FollowedPartition],
        *,
        got_data: bool = True,
    ) -> None:
        """Make a change and those that follow from it; *changing* holds the partition until all are made."""
        while change is not None:
            try:
                outcome = change.apply(followed.partition)
                if isinstance(outcome, Deferred):
                    self._await_change(followed, outcome, changing)
                    return
                change = followed.fetch.finish_change(self._clock.seconds())
            except Exception as problem:
                followed.fetch.fail_change(problem, self._clock.seconds())
                break
        self._place(followed, is_last=got_data)

    def _await_change(
        self, followed: FollowedPartition, outcome: Deferred[object], changing: set[FollowedPartition]
    ) -> None:
        changing.add(followed)
        followed.begin_change()
        self._place(followed)
        Deferred.fromCoroutine(self._end_change(followed, outcome, changing))

    async def _end_change(
        self, followed: FollowedPartition, outcome: Deferred[object], changing: set[FollowedPartition]
    ) -> None:
        problem: Exception | None = None
        try:
            await outcome
        except Exception as failure:
            problem = failure
        changing.discard(followed)
        followed.end_change()
        self._rest.end()
        if not self._partitions.has(followed):
            return
        if problem is None:
            self._decide(followed, followed.fetch.finish_change, changing)
        else:
            followed.fetch.fail_change(problem, self._clock.seconds())
            self._place(followed)


def _fetches_of(followed: Iterable[FollowedPartition]) -> list[PartitionFetch]:
    return [partition.fetch for partition in followed]


def _take_epoch(fetch: PartitionFetch, answer: EpochEndOffset, now_s: float) -> LogChange | None:
    return fetch.answer_epoch(answer, now_s)


def _take_leader_end(fetch: PartitionFetch, answer: LeaderOffset, now_s: float) -> LogChange | None:
    return fetch.answer_leader_end(answer.error_code, answer.offset, now_s)


def _take_leader_start(fetch: PartitionFetch, answer: LeaderOffset, now_s: float) -> LogChange | None:
    return fetch.answer_leader_start(answer.error_code, answer.offset, now_s)
