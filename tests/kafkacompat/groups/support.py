"""A coordinator on a clock that only tests advance, and the requests of members."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, overload

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock

from kafkacompat.groups.any_group import SenderIdentity
from kafkacompat.groups.classic_protocol import Joiner
from kafkacompat.groups.commits import FetchedOffsets, OffsetToCommit
from kafkacompat.groups.consumer.settings import ConsumerGroupSettings
from kafkacompat.groups.coordinator import GroupCoordinator
from kafkacompat.groups.settings import GroupSettings
from kafkacompat.metadata.image import ImageHolder
from kafkacompat.wire.apis.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kafkacompat.wire.apis.leave_group import MemberIdentity
from kafkacompat.wire.apis.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from kafkacompat.wire.consumer_protocol import ConsumerProtocolSubscription, write_subscription
from kafkacompat.wire.errors import ErrorCode
from tests.fakes.coordinator_log import FakeCoordinatorLog

T = TypeVar("T")

GROUP = "g"
TOPIC_ID = b"\x01" * 16
SESSION_S = 10
REBALANCE_S = 60
DELAY_S = 3


def write_topics(*topics: str) -> bytes:
    """Return the metadata of a consumer."""
    return write_subscription(ConsumerProtocolSubscription(topics=list(topics)), 0)


RANGE = (("range", write_topics("t")),)


@overload
def take_response(answer: Deferred[T]) -> T: ...
@overload
def take_response(answer: T | Deferred[T]) -> T: ...
def take_response(answer: object) -> object:
    """Return the response, which has to be there already."""
    if not isinstance(answer, Deferred):
        return answer
    assert answer.called, "there is no answer yet"
    return answer.result


def is_waiting(answer: object) -> bool:
    """Return whether there is no response yet."""
    return isinstance(answer, Deferred) and not answer.called


class TurningClock(Clock):
    """A clock that can also make a single turn of the reactor; calls that a turn schedules wait for the next turn."""

    def skip(self, seconds: float) -> None:
        """Let time pass without a turn."""
        self.rightNow += seconds

    def turn(self) -> None:
        """Make the calls that are due now, but none that these schedule."""
        for call in [call for call in self.calls if call.getTime() <= self.seconds()]:
            if call.active():
                self.calls.remove(call)
                call.called = 1
                call.func(*call.args, **call.kw)


class World:
    """One coordinator that leads every partition of a fake offsets log."""

    def __init__(
        self,
        log: FakeCoordinatorLog | None = None,
        seed: int = 1,
        consumer_settings: ConsumerGroupSettings = ConsumerGroupSettings(),  # noqa: B008  # it cannot be changed
        **settings: Any,
    ) -> None:
        self.clock = TurningClock()
        self.clock.advance(1_000_000)
        self.log = log if log is not None else FakeCoordinatorLog()
        self.settings = GroupSettings(**settings)
        self.metadata = ImageHolder()
        self.coordinator = GroupCoordinator(
            self.clock,
            self.settings,
            self.log,
            lambda: succeed(None),
            random.Random(seed).randbytes,
            metadata=self.metadata,
            consumer_settings=consumer_settings,
        )
        for partition in range(self.log.partition_count):
            self.coordinator.on_election(partition)
        self.coordinator.start()

    def restarted(self) -> World:
        """Another coordinator on the same log, with everything loaded."""
        other = World(self.log)
        other.turn(100)
        return other

    def wait(self, seconds: int) -> None:
        """Let time pass second by second, so that each timer fires at its own time."""
        self.clock.pump([1] * seconds)

    def turn(self, times: int = 1) -> None:
        """Turn the reactor without letting time pass."""
        for _ in range(times):
            self.clock.turn()

    # Requests

    def join(
        self,
        member_id: str = "",
        *,
        group: str = GROUP,
        instance: str | None = None,
        protocols: Sequence[tuple[str, bytes]] = RANGE,
        protocol_type: str = "consumer",
        session_s: float = SESSION_S,
        rebalance_s: float = REBALANCE_S,
        version: int = 9,
    ) -> JoinGroupResponse | Deferred[JoinGroupResponse]:
        request = JoinGroupRequest(
            group_id=group,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols],
            session_timeout_ms=int(session_s * 1000),
            rebalance_timeout_ms=int(rebalance_s * 1000),
        )
        return self.coordinator.join(request, Joiner("client", "/127.0.0.1", version >= 4, version >= 9))

    def join_twice(self, **options: Any) -> tuple[str, Deferred[JoinGroupResponse]]:
        """Request a member id and join with it; returns the id and the waiting response."""
        member_id = take_response(self.join(**options)).member_id
        answer = self.join(member_id, **options)
        assert isinstance(answer, Deferred)
        return member_id, answer

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: Mapping[str, bytes] | None = None,
        *,
        group: str = GROUP,
        instance: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
    ) -> SyncGroupResponse | Deferred[SyncGroupResponse]:
        request = SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=[
                SyncGroupRequestAssignment(member_id=assignee, assignment=assignment)
                for assignee, assignment in (assignments or {}).items()
            ],
        )
        return self.coordinator.sync(request)

    def heartbeat(
        self, member_id: str, generation: int, *, group: str = GROUP, instance: str | None = None
    ) -> ErrorCode:
        return self.coordinator.heartbeat(group, SenderIdentity(member_id, instance, generation))

    def leave(self, *member_ids: str, group: str = GROUP) -> ErrorCode | list[ErrorCode]:
        answer = self.coordinator.leave(group, [MemberIdentity(member_id=member_id) for member_id in member_ids])
        return answer if isinstance(answer, ErrorCode) else take_response(answer)

    def commit(
        self,
        offset: int = 7,
        *,
        member_id: str = "",
        generation: int = -1,
        instance: str | None = None,
        group: str = GROUP,
        topic: str = "t",
        partition: int = 0,
        metadata: str | None = "",
        retention_ms: int = -1,
    ) -> list[ErrorCode] | Deferred[list[ErrorCode]]:
        offset_to_commit = OffsetToCommit(topic, TOPIC_ID, partition, offset, 0, metadata)
        return self.coordinator.commit(
            group, SenderIdentity(member_id, instance, generation), [offset_to_commit], retention_ms
        )

    def committed(self, *, group: str = GROUP, topic: str = "t", partition: int = 0) -> int:
        """Return the offset that OffsetFetch returns now; -1 for none."""
        fetched: FetchedOffsets = take_response(self.coordinator.fetch_offsets(group))
        assert fetched.error_code is ErrorCode.NONE
        committed = fetched.offsets.get(topic, partition)
        return committed.offset if committed is not None else -1

    # Scenarios

    def state(self, group: str = GROUP) -> str:
        return self.coordinator.describe(group).group_state

    def form(self, count: int = 1, **options: Any) -> list[str]:
        """Bring a group of *count* members to CompletingRebalance, generation 1; the leader comes first."""
        joined = [self.join_twice(**options) for _ in range(count)]
        for _ in range(count):
            self.clock.advance(DELAY_S)
        answers = [take_response(answer) for _, answer in joined]
        assert {answer.generation_id for answer in answers} == {1}
        leader = answers[0].leader
        return sorted((member_id for member_id, _ in joined), key=lambda member_id: member_id != leader)

    def stable(self, count: int = 1, **options: Any) -> list[str]:
        """As `form`, and let every member receive its assignment, which is its own id."""
        members = self.form(count, **options)
        group = str(options.get("group", GROUP))
        followers = [self.sync(member_id, 1, group=group) for member_id in members[1:]]
        assignments = {member_id: member_id.encode() for member_id in members}
        leader = self.sync(members[0], 1, assignments, group=group)
        answers = [take_response(answer) for answer in (leader, *followers)]
        assert [answer.assignment for answer in answers] == [member_id.encode() for member_id in members]
        return members

    def play(self, story: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Bring a group to the end of a story: "nothing", "form", "stable", "empty" or "rebalance".

        Returns the request with the id of the group's member in place of "it".
        """
        (member_id,) = {"nothing": lambda: [""], "form": self.form}.get(story, self.stable)()
        if story == "empty":
            self.leave(member_id)
        if story == "rebalance":
            self.join_twice()
        return {name: member_id if value == "it" else value for name, value in request.items()}
