"""Members of a consumer group that speak the classic protocol: JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

Their generation is their member epoch. The response to a Heartbeat tells them to rejoin. With JoinGroup they report the partitions
that they own, and the response to SyncGroup brings their assignment. No member leads, and no member waits for the others.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from kafkacompat.groups.any_group import SenderIdentity
from kafkacompat.groups.classic_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    JoinAnswer,
    Joiner,
    LeaveAnswer,
    Protocols,
    SyncAnswer,
    build_join_refusal,
    build_sync_refusal,
)
from kafkacompat.groups.consumer.admission import Admission
from kafkacompat.groups.consumer.checks import check_group_size, find_member, unknown_member_error
from kafkacompat.groups.consumer.classic_assignment import classic_assignment, partitions_by_id
from kafkacompat.groups.consumer.departures import Departures
from kafkacompat.groups.consumer.group import ConsumerGroup
from kafkacompat.groups.consumer.group_writer import GroupWriter, respond_when_written
from kafkacompat.groups.consumer.member import ClassicMetadata, ConsumerMember, MemberState, MemberTimer, as_assignment
from kafkacompat.groups.consumer.progress import GroupChange, GroupProgress, start_change
from kafkacompat.groups.consumer.settings import ConsumerGroupSettings
from kafkacompat.groups.consumer.timeouts import Timeouts
from kafkacompat.metadata.image import ImageHolder
from kafkacompat.wire.apis.join_group import JoinGroupRequest, JoinGroupResponse
from kafkacompat.wire.apis.leave_group import MemberIdentity
from kafkacompat.wire.apis.sync_group import SyncGroupRequest, SyncGroupResponse
from kafkacompat.wire.consumer_protocol import ConsumerProtocolSubscription, read_subscription
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import MalformedError

log = logging.getLogger(__name__)


class ClassicMembers:
    """Answers members of consumer groups that speak the classic protocol."""

    def __init__(
        self,
        settings: ConsumerGroupSettings,
        metadata: ImageHolder,
        admission: Admission,
        progress: GroupProgress,
        departures: Departures,
        timeouts: Timeouts,
        storing: GroupWriter,
    ) -> None:
        self._storing = storing
        self._settings = settings
        self._metadata = metadata
        self._admission = admission
        self._progress = progress
        self._departures = departures
        self._timeouts = timeouts

    # JoinGroup

    def join(self, group: ConsumerGroup, request: JoinGroupRequest, joiner: Joiner) -> JoinAnswer:
        """Add a member, or store what it reports; the response is sent once that is in the log."""
        try:
            return self._join(group, request, joiner)
        except KafkaError as problem:
            return build_join_refusal(problem.code)

    def _join(self, group: ConsumerGroup, request: JoinGroupRequest, joiner: Joiner) -> JoinAnswer:
        self._check_join(group, request)
        has_no_id = not request.member_id
        member_id = request.member_id or self._admission.new_member_id()
        check_group_size(group.contents, member_id, self._settings.max_size)
        if has_no_id and request.group_instance_id is None and joiner.requires_member_id:
            return build_join_refusal(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        change = start_change(group)
        replaced = group.contents.find_static_member(request.group_instance_id)
        old = self._admission.find_or_create_member(
            change,
            member_id,
            request.group_instance_id,
            may_join=has_no_id or request.group_instance_id is None,
            is_classic=True,
        )
        subscription = _parse_subscription(request)
        new = _update_member(old, request, joiner, subscription)
        has_new_subscription = self._progress.subscribe(change, old, new)
        if replaced is not None and self._was_last_consumer(group, replaced):
            return self._join_and_convert(change, new, has_new_subscription)
        owned = partitions_by_id(subscription.owned_partitions, self._metadata.image)
        member = self._progress.reconcile(change, new, owned, has_new_subscription=has_new_subscription)
        self._progress.check_memory(change)
        waiting = self._progress.apply_and_write(change)
        self._expect_sync(group, member, request)
        return respond_when_written(waiting, _join_response(member), build_join_refusal)

    def _check_join(self, group: ConsumerGroup, request: JoinGroupRequest) -> None:
        names = [protocol.name for protocol in request.protocols]
        if not self._settings.accepts_classic_members or not group.supports(request.protocol_type, names):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    def _was_last_consumer(self, group: ConsumerGroup, replaced: ConsumerMember) -> bool:
        """Return whether the replaced static member was the last one of the consumer protocol."""
        members = group.contents.members.values()
        is_last = replaced.classic is None and all(member.classic or member is replaced for member in members)
        return is_last and self._departures.may_become_classic(len(members))

    def _join_and_convert(self, change: GroupChange, member: ConsumerMember, has_new_subscription: bool) -> JoinAnswer:
        contents = change.draft.contents
        others = (other for other in contents.members.values() if other.member_id != member.member_id)
        # A stable classic group needs settled members: they learn neither of partitions to give up nor of free ones.
        is_settled = contents.assignment_epoch == contents.epoch and all(
            other.is_reconciled_to(contents.epoch) for other in others
        )
        reason = None if is_settled else f"{member.member_id} now speaks the classic protocol"
        response = _join_response(replace(member, member_epoch=contents.epoch))
        return respond_when_written(
            self._departures.make_classic(change.group, contents, reason), response, build_join_refusal
        )

    def _expect_sync(self, group: ConsumerGroup, member: ConsumerMember, request: JoinGroupRequest) -> None:
        member_id = member.member_id
        self._timeouts.cancel(group, member_id, MemberTimer.JOIN, MemberTimer.REBALANCE)
        self._timeouts.start(group, MemberTimer.SESSION, member_id, request.session_timeout_ms)
        self._timeouts.start(group, MemberTimer.SYNC, member_id, request.rebalance_timeout_ms)

    # SyncGroup

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest) -> SyncAnswer:
        """Answer a member with its assignment."""
        try:
            member = self._find_classic_member(
                group, SenderIdentity(request.member_id, request.group_instance_id, request.generation_id)
            )
            self._check_sync(group, member, request)
        except KafkaError as problem:
            return build_sync_refusal(problem.code)
        return respond_when_written(
            self._storing.wait_for_writes(group), self._build_sync_response(group, member, request), build_sync_refusal
        )

    def _check_sync(self, group: ConsumerGroup, member: ConsumerMember, request: SyncGroupRequest) -> None:
        requested = (request.protocol_type, request.protocol_name)
        for name, agreed in zip(requested, (CONSUMER_PROTOCOL_TYPE, _protocol_name(member)), strict=True):
            if name not in (None, agreed):
                raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        has_old_epoch = group.contents.assignment_epoch > member.member_epoch
        # A member that still has to give up partitions has joined for this epoch, and gives them up first.
        if has_old_epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._expect_join(group, member)
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)

    def _build_sync_response(
        self, group: ConsumerGroup, member: ConsumerMember, request: SyncGroupRequest
    ) -> SyncGroupResponse:
        assert member.classic is not None
        self._timeouts.cancel(group, member.member_id, MemberTimer.SYNC)
        self._timeouts.start(group, MemberTimer.SESSION, member.member_id, member.classic.session_timeout_ms)
        assignment = classic_assignment(
            as_assignment(member.assigned), member.classic.protocols[0][1], self._metadata.image
        )
        return SyncGroupResponse(
            protocol_type=request.protocol_type, protocol_name=request.protocol_name, assignment=assignment
        )

    # Heartbeat

    def heartbeat(self, group: ConsumerGroup, identity: SenderIdentity) -> ErrorCode:
        """Restart a member's session. Returns REBALANCE_IN_PROGRESS if it has to rejoin."""
        try:
            member = self._find_classic_member(group, identity)
        except KafkaError as problem:
            return problem.code
        assert member.classic is not None
        self._timeouts.start(group, MemberTimer.SESSION, member.member_id, member.classic.session_timeout_ms)
        if not _has_to_rejoin(group, member):
            return ErrorCode.NONE
        self._expect_join(group, member)
        return ErrorCode.REBALANCE_IN_PROGRESS

    def _expect_join(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        self._timeouts.start_unless_running(group, MemberTimer.JOIN, member.member_id, member.rebalance_timeout_ms)

    def _find_classic_member(self, group: ConsumerGroup, identity: SenderIdentity) -> ConsumerMember:
        member = find_member(group.contents, group.group_id, identity.group_instance_id, identity.member_id)
        if member.classic is None:
            raise unknown_member_error(identity.member_id, group.group_id)
        if member.member_epoch != identity.generation_id:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        return member

    # LeaveGroup

    def leave(self, group: ConsumerGroup, members: Sequence[MemberIdentity]) -> LeaveAnswer:
        """Remove members of either protocol, by id or by instance id; returns one code for each."""
        codes: list[ErrorCode] = []
        leaving: dict[str, None] = {}
        for identity in members:
            try:
                leaving[self._find_leaving(group, identity)] = None
                codes.append(ErrorCode.NONE)
            except KafkaError as problem:
                codes.append(problem.code)
        waiting = self._departures.remove_members(group, list(leaving))
        return respond_when_written(waiting, codes, lambda refusal: [code or refusal for code in codes])

    def _find_leaving(self, group: ConsumerGroup, identity: MemberIdentity) -> str:
        contents = group.contents
        member_id = identity.member_id
        if identity.group_instance_id is not None and not member_id:
            member_id = contents.statics.get(identity.group_instance_id, "")
        member = find_member(contents, group.group_id, identity.group_instance_id, member_id)
        log.info("Group %s: %s leaves (%s)", group.group_id, member_id, identity.reason or "no reason given")
        return member.member_id


def _parse_subscription(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    try:
        return read_subscription(request.protocols[0].metadata)
    except MalformedError as problem:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the subscription is malformed: {problem}") from None


def _update_member(
    member: ConsumerMember, request: JoinGroupRequest, joiner: Joiner, subscription: ConsumerProtocolSubscription
) -> ConsumerMember:
    """Return the member with the fields of its request; it speaks the classic protocol from now on."""
    protocols: Protocols = tuple((protocol.name, protocol.metadata) for protocol in request.protocols)
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms < 0 else timeout_ms,
        topics=frozenset(subscription.topics),
        pattern="",
        client_id=joiner.client_id,
        client_host=joiner.client_host,
        classic=ClassicMetadata(request.session_timeout_ms, protocols),
    )


def _has_to_rejoin(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Return whether a member has to rejoin: for a new epoch, to give up partitions, or to get partitions that are free now."""
    contents = group.contents
    if member.member_epoch < contents.assignment_epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    return member.state is MemberState.UNRELEASED_PARTITIONS and not any(
        contents.find_owner(topic_id, partition) is not None
        for topic_id, partitions in contents.targets.get(member.member_id, {}).items()
        for partition in partitions
        if partition not in member.assigned.get(topic_id, {})
    )


def _protocol_name(member: ConsumerMember) -> str:
    assert member.classic is not None
    return member.classic.protocols[0][0]


def _join_response(member: ConsumerMember) -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=member.member_epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=_protocol_name(member),
        member_id=member.member_id,
    )
