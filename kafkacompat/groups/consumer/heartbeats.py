"""ConsumerGroupHeartbeat: a member joins, reports changes, and receives its assignment (KIP-848).

A heartbeat changes a group in three steps. The group's epoch grows if the member's subscription or the topics have changed. The
assignor computes new targets if they are due. The member moves towards its target. All records of a heartbeat are one batch, and
the response waits until the log has it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from twisted.internet.defer import Deferred

from kafkacompat.coordination.outbox import Outbox
from kafkacompat.groups.consumer.admission import Admission
from kafkacompat.groups.consumer.checks import (
    NOT_GIVEN,
    check_group_size,
    check_groups_served,
    check_heartbeat_request,
    check_member_epoch,
    parse_owned_partitions,
)
from kafkacompat.groups.consumer.contents import ResolvedPattern
from kafkacompat.groups.consumer.departures import Departures
from kafkacompat.groups.consumer.group_writer import respond_when_written
from kafkacompat.groups.consumer.member import JOINING_EPOCH, ConsumerMember, Holding, MemberTimer
from kafkacompat.groups.consumer.pattern_subscriptions import PatternSubscriptions
from kafkacompat.groups.consumer.progress import ClientIdentity, GroupProgress
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
        progress: GroupProgress,
        departures: Departures,
        timeouts: Timeouts,
        patterns: PatternSubscriptions,
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
        self, request: ConsumerGroupHeartbeatRequest, client: ClientIdentity, *, needs_member_id: bool
    ) -> HeartbeatAnswer:
        """Answer a heartbeat; with ``needs_member_id`` the member has to choose its own id (version 1)."""
        try:
            check_groups_served(self._settings)
            check_heartbeat_request(request, self._settings.assignors, needs_member_id=needs_member_id)
            if request.member_epoch < JOINING_EPOCH:
                return self._leave(request)
            return self._resolve_and_stay(request, client)
        except KafkaError as problem:
            return _build_refusal(problem)

    def _resolve_and_stay(self, request: ConsumerGroupHeartbeatRequest, client: ClientIdentity) -> HeartbeatAnswer:
        pattern = request.subscribed_topic_regex
        is_joining = request.member_epoch == JOINING_EPOCH
        if pattern is None or not is_joining or not self._patterns.is_new(request.group_id, pattern):
            return self._stay(request, client, None)
        resolving = self._patterns.look_up(pattern, client.may_see, client.compile_pattern)
        return resolving.addCallback(lambda resolved: self._outbox.run(self._stay_or_refuse, request, client, resolved))

    def _stay_or_refuse(
        self, request: ConsumerGroupHeartbeatRequest, client: ClientIdentity, resolved: ResolvedPattern
    ) -> HeartbeatAnswer:
        try:
            return self._stay(request, client, resolved)
        except KafkaError as problem:
            return _build_refusal(problem)

    def _leave(self, request: ConsumerGroupHeartbeatRequest) -> HeartbeatAnswer:
        group = self._admission.find_or_create_group(request.group_id, is_joining=False).group
        waiting = self._departures.remove_leaving_member(group, request)
        response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
        return respond_when_written(waiting, response, _refuse_with)

    def _stay(
        self, request: ConsumerGroupHeartbeatRequest, client: ClientIdentity, resolved: ResolvedPattern | None
    ) -> HeartbeatAnswer:
        is_joining = request.member_epoch == JOINING_EPOCH
        change = self._admission.find_or_create_group(request.group_id, is_joining=is_joining)
        check_group_size(change.before, request.member_id, self._settings.max_size)
        member_id = request.member_id or self._admission.new_member_id()
        owned = parse_owned_partitions(request)
        old = self._admission.find_or_create_member(change, member_id, request.instance_id, may_join=is_joining)
        check_member_epoch(old, request.member_epoch, owned)
        new = _update_member(old, request, client, is_known=member_id in change.before.members)
        has_new_subscription = self._progress.subscribe(change, old, new, resolved, client.compile_pattern)
        member = self._progress.reconcile(change, new, owned, has_new_subscription=has_new_subscription)
        group = change.group
        group.may_see, group.compile_pattern = client.may_see, client.compile_pattern
        self._progress.check_memory(change)
        is_converted = self._admission.retire_replaced_group(group)
        waiting = self._progress.apply_and_write(change)
        if is_converted:
            self._timeouts.start_classic_sessions(group)
        if old.classic is not None:
            self._timeouts.cancel(group, member_id, MemberTimer.JOIN, MemberTimer.SYNC)
        self._progress.update_rebalance_timer(group, new, member)
        self._timeouts.start(group, MemberTimer.SESSION, member_id, self._configs.session_timeout_ms(group.group_id))
        return respond_when_written(waiting, self._build_response(request, old, member), _refuse_with)

    def _build_response(
        self, request: ConsumerGroupHeartbeatRequest, old: ConsumerMember, member: ConsumerMember
    ) -> ConsumerGroupHeartbeatResponse:
        needs_assignment = _is_full(request) or old.assigned != member.assigned
        return ConsumerGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.member_epoch,
            heartbeat_interval_ms=self._configs.heartbeat_interval_ms(request.group_id),
            assignment=_build_assignment(member.assigned) if needs_assignment else None,
        )


def _update_member(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, client: ClientIdentity, *, is_known: bool
) -> ConsumerMember:
    """Return the member with the fields of its request; it speaks the consumer protocol from now on.

    A field that the request leaves out keeps its value. A member that replaces a static member has reported nothing before.
    """
    known = member if is_known else ConsumerMember(member.member_id)
    names = request.subscribed_topic_names
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=_choose_text(request.instance_id, known.instance_id),
        rack_id=_choose_text(request.rack_id, known.rack_id),
        rebalance_timeout_ms=known.rebalance_timeout_ms if timeout_ms == NOT_GIVEN else timeout_ms,
        topics=known.topics if names is None else frozenset(names),
        pattern=_choose_text(request.subscribed_topic_regex, known.pattern),
        assignor=_choose_text(request.server_assignor, known.assignor),
        client_id=client.client_id,
        client_host=client.client_host,
        classic=None,
    )


def _choose_text(text: str | None, known: str | None) -> str | None:
    return known if text is None else text


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Return whether the request has all fields, as when a member joins, or retries because it got no response."""
    has_subscription = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    has_timeout = request.rebalance_timeout_ms != NOT_GIVEN
    is_joining = request.member_epoch == JOINING_EPOCH
    return is_joining or (has_timeout and has_subscription and request.topic_partitions is not None)


def _build_assignment(holding: Holding) -> Assignment:
    parts = [TopicPartitions(topic_id=topic_id, partitions=sorted(epochs)) for topic_id, epochs in holding.items()]
    return Assignment(topic_partitions=parts)


def _build_refusal(problem: KafkaError) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=problem.code, error_message=problem.detail or None)


def _refuse_with(code: ErrorCode) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=code)
