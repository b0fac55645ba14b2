"""ConsumerGroupHeartbeat: a member joins, says what has changed, and learns what it may read (KIP-848).

Three things happen to a group upon a heartbeat. Its epoch grows if the member has another subscription, or the topics
are not what they were. The partitions are shared out anew if that is due. And the member is moved towards what it
shall have. Whatever of it goes to the log is one batch, and the answer waits for that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from twisted.internet.defer import Deferred

from kafkacompat.coordination.outbox import Outbox
from kafkacompat.groups.consumer.admission import Admission
from kafkacompat.groups.consumer.checks import (
    NOT_GIVEN,
    check_epoch,
    check_place,
    check_request,
    check_served,
    owned_by,
)
from kafkacompat.groups.consumer.contents import ResolvedPattern
from kafkacompat.groups.consumer.departures import Departures
from kafkacompat.groups.consumer.group_writer import answered
from kafkacompat.groups.consumer.member import JOINING_EPOCH, ConsumerMember, Holding, Timer
from kafkacompat.groups.consumer.pattern_subscriptions import Patterns
from kafkacompat.groups.consumer.progress import Client, Progress
from kafkacompat.groups.consumer.settings import ConsumerGroupSettings, GroupConfigs
from kafkacompat.groups.consumer.timeouts import Timeouts
from kafkacompat.wire.apis.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError

HeartbeatAnswer: TypeAlias = "ConsumerGroupHeartbeatResponse | Deferred[ConsumerGroupHeartbeatResponse]"


class Heartbeats:
    """Answers the members of the consumer protocol."""

    def __init__(
        self,
        settings: ConsumerGroupSettings,
        configs: GroupConfigs,
        admission: Admission,
        progress: Progress,
        departures: Departures,
        timeouts: Timeouts,
        patterns: Patterns,
        outbox: Outbox,
    ) -> None:
        self._patterns = patterns
        self._outbox = outbox
        self._settings = settings
        self._configs = configs
        self._admission = admission
        self._progress = progress
        self._departures = departures
        self._timeouts = timeouts

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: Client, *, needs_member_id: bool
    ) -> HeartbeatAnswer:
        """Answer a heartbeat; ``needs_member_id``: the member has to bring an id of its own (version 1)."""
        try:
            check_served(self._settings)
            check_request(request, self._settings.assignors, needs_member_id=needs_member_id)
            if request.member_epoch < JOINING_EPOCH:
                return self._leave(request)
            return self._look_up_and_stay(request, client)
        except KafkaError as problem:
            return _refusal(problem)

    def _look_up_and_stay(self, request: ConsumerGroupHeartbeatRequest, client: Client) -> HeartbeatAnswer:
        pattern = request.subscribed_topic_regex
        is_joining = request.member_epoch == JOINING_EPOCH
        if pattern is None or not is_joining or not self._patterns.is_new(request.group_id, pattern):
            return self._stay(request, client, None)
        looking = self._patterns.look_up(pattern)
        return looking.addCallback(lambda found: self._outbox.run(self._stay_or_refuse, request, client, found))

    def _stay_or_refuse(
        self, request: ConsumerGroupHeartbeatRequest, client: Client, found: ResolvedPattern
    ) -> HeartbeatAnswer:
        try:
            return self._stay(request, client, found)
        except KafkaError as problem:
            return _refusal(problem)

    def _leave(self, request: ConsumerGroupHeartbeatRequest) -> HeartbeatAnswer:
        group = self._admission.group(request.group_id, is_joining=False).group
        waiting = self._departures.leave(group, request)
        told = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
        return answered(waiting, told, _refused)

    def _stay(
        self, request: ConsumerGroupHeartbeatRequest, client: Client, found: ResolvedPattern | None
    ) -> HeartbeatAnswer:
        is_joining = request.member_epoch == JOINING_EPOCH
        change = self._admission.group(request.group_id, is_joining=is_joining)
        check_place(change.before, request.member_id, self._settings.max_size)
        member_id = request.member_id or self._admission.new_member_id()
        owned = owned_by(request)
        old = self._admission.member(change, member_id, request.instance_id, may_come_in=is_joining)
        check_epoch(old, request.member_epoch, owned)
        new = _described(old, request, client, is_known=member_id in change.before.members)
        has_new_subscription = self._progress.subscribe(change, old, new, found)
        member = self._progress.reconcile(change, new, owned, has_new_subscription=has_new_subscription)
        group = change.group
        self._progress.check_room(change)
        is_converted = self._admission.take_over(group)
        waiting = self._progress.store(change)
        if is_converted:
            self._timeouts.converted(group)
        if old.classic is not None:
            self._timeouts.cancel(group, member_id, Timer.JOIN, Timer.SYNC)
        self._progress.watch(group, new, member)
        self._timeouts.start(group, Timer.SESSION, member_id, self._configs.session_timeout_ms(group.group_id))
        return answered(waiting, self._told(request, old, member), _refused)

    def _told(
        self, request: ConsumerGroupHeartbeatRequest, old: ConsumerMember, member: ConsumerMember
    ) -> ConsumerGroupHeartbeatResponse:
        is_to_be_told = _is_full(request) or old.assigned != member.assigned
        return ConsumerGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.member_epoch,
            heartbeat_interval_ms=self._configs.heartbeat_interval_ms(request.group_id),
            assignment=_assignment(member.assigned) if is_to_be_told else None,
        )


def _described(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, client: Client, *, is_known: bool
) -> ConsumerMember:
    """The member with what its request says anew; from now on it speaks the consumer protocol.

    What the request does not say is as it was; one that takes a static member's place has said nothing before.
    """
    before = member if is_known else ConsumerMember(member.member_id)
    names = request.subscribed_topic_names
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=_given(request.instance_id, before.instance_id),
        rack_id=_given(request.rack_id, before.rack_id),
        rebalance_timeout_ms=before.rebalance_timeout_ms if timeout_ms == NOT_GIVEN else timeout_ms,
        topics=before.topics if names is None else frozenset(names),
        pattern=_given(request.subscribed_topic_regex, before.pattern),
        assignor=_given(request.server_assignor, before.assignor),
        client_id=client.client_id,
        client_host=client.client_host,
        classic=None,
    )


def _given(text: str | None, before: str | None) -> str | None:
    return before if text is None else text


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether the member says everything, as it does when it joins and when it lost an answer."""
    has_subscription = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    has_timeout = request.rebalance_timeout_ms != NOT_GIVEN
    is_joining = request.member_epoch == JOINING_EPOCH
    return is_joining or (has_timeout and has_subscription and request.topic_partitions is not None)


def _assignment(holding: Holding) -> Assignment:
    parts = [TopicPartitions(topic_id=topic_id, partitions=sorted(epochs)) for topic_id, epochs in holding.items()]
    return Assignment(topic_partitions=parts)


def _refusal(problem: KafkaError) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=problem.code, error_message=problem.detail or None)


def _refused(code: ErrorCode) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=code)
