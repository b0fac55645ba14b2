"""Members of a consumer group that speak the classic protocol: JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

Their generation is their member epoch. They learn from a Heartbeat that they are to join again, say with JoinGroup what
they have, and are told with SyncGroup what they may read; nobody leads, and nobody waits for the others.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from kafkacompat.groups.any_group import Identity
from kafkacompat.groups.classic_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    JoinAnswer,
    Joiner,
    LeaveAnswer,
    Protocols,
    SyncAnswer,
    join_refused,
    sync_refused,
)
from kafkacompat.groups.consumer.admission import Admission
from kafkacompat.groups.consumer.checks import check_place, known_member, unknown_member
from kafkacompat.groups.consumer.classic_assignment import classic_assignment, partitions_by_id
from kafkacompat.groups.consumer.departures import Departures
from kafkacompat.groups.consumer.group import ConsumerGroup
from kafkacompat.groups.consumer.group_writer import Storing, answered
from kafkacompat.groups.consumer.member import ClassicMetadata, ConsumerMember, MemberState, Timer, without_epochs
from kafkacompat.groups.consumer.progress import Change, Progress, change_of
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
    """Answers the members of consumer groups that speak the classic protocol."""

    def __init__(
        self,
        settings: ConsumerGroupSettings,
        metadata: ImageHolder,
        admission: Admission,
        progress: Progress,
        departures: Departures,
        timeouts: Timeouts,
        storing: Storing,
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
        """Take a member in, or note what it has now; it is answered as soon as that is in the log."""
        try:
            return self._join(group, request, joiner)
        except KafkaError as problem:
            return join_refused(problem.code)

    def _join(self, group: ConsumerGroup, request: JoinGroupRequest, joiner: Joiner) -> JoinAnswer:
        self._check_join(group, request)
        has_no_id = not request.member_id
        member_id = request.member_id or self._admission.new_member_id()
        check_place(group.contents, member_id, self._settings.max_size)
        if has_no_id and request.group_instance_id is None and joiner.requires_member_id:
            return join_refused(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        change = change_of(group)
        replaced = group.contents.static_member(request.group_instance_id)
        old = self._admission.member(
            change,
            member_id,
            request.group_instance_id,
            may_come_in=has_no_id or request.group_instance_id is None,
            is_classic=True,
        )
        subscription = _subscription(request)
        new = _described(old, request, joiner, subscription)
        has_new_subscription = self._progress.subscribe(change, old, new)
        if replaced is not None and self._is_last_of_its_kind(group, replaced):
            return self._join_and_convert(change, new, has_new_subscription)
        owned = partitions_by_id(subscription.owned_partitions, self._metadata.image)
        member = self._progress.reconcile(change, new, owned, has_new_subscription=has_new_subscription)
        self._progress.check_room(change)
        waiting = self._progress.store(change)
        self._expect_sync(group, member, request)
        return answered(waiting, _joined(member), join_refused)

    def _check_join(self, group: ConsumerGroup, request: JoinGroupRequest) -> None:
        names = [protocol.name for protocol in request.protocols]
        if not self._settings.lets_classic_members_in or not group.supports(request.protocol_type, names):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    def _is_last_of_its_kind(self, group: ConsumerGroup, replaced: ConsumerMember) -> bool:
        """Whether only members of the classic protocol are left once this static one speaks it as well."""
        members = group.contents.members.values()
        is_last = replaced.classic is None and all(member.classic or member is replaced for member in members)
        return is_last and self._departures.may_be_classic(len(members))

    def _join_and_convert(self, change: Change, member: ConsumerMember, has_new_subscription: bool) -> JoinAnswer:
        contents = change.draft.contents
        others = (each for each in contents.members.values() if each.member_id != member.member_id)
        # In a stable classic group nobody hears of what is still to be given up, or free by now.
        is_settled = contents.assignment_epoch == contents.epoch and all(
            each.is_reconciled_to(contents.epoch) for each in others
        )
        reason = None if is_settled else f"{member.member_id} speaks the classic protocol now"
        told = _joined(replace(member, member_epoch=contents.epoch))
        return answered(self._departures.make_classic(change.group, contents, reason), told, join_refused)

    def _expect_sync(self, group: ConsumerGroup, member: ConsumerMember, request: JoinGroupRequest) -> None:
        member_id = member.member_id
        self._timeouts.cancel(group, member_id, Timer.JOIN, Timer.REBALANCE)
        self._timeouts.start(group, Timer.SESSION, member_id, request.session_timeout_ms)
        self._timeouts.start(group, Timer.SYNC, member_id, request.rebalance_timeout_ms)

    # SyncGroup

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest) -> SyncAnswer:
        """Tell a member what it may read."""
        try:
            member = self._classic_member(
                group, Identity(request.member_id, request.group_instance_id, request.generation_id)
            )
            self._check_sync(group, member, request)
        except KafkaError as problem:
            return sync_refused(problem.code)
        return answered(self._storing.settled(group), self._synced(group, member, request), sync_refused)

    def _check_sync(self, group: ConsumerGroup, member: ConsumerMember, request: SyncGroupRequest) -> None:
        named = (request.protocol_type, request.protocol_name)
        for asked, agreed in zip(named, (CONSUMER_PROTOCOL_TYPE, _protocol_name(member)), strict=True):
            if asked not in (None, agreed):
                raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        is_behind = group.contents.assignment_epoch > member.member_epoch
        # One that has yet to give partitions up has joined for this epoch, and does so first.
        if is_behind and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._expect_join(group, member)
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)

    def _synced(self, group: ConsumerGroup, member: ConsumerMember, request: SyncGroupRequest) -> SyncGroupResponse:
        assert member.classic is not None
        self._timeouts.cancel(group, member.member_id, Timer.SYNC)
        self._timeouts.start(group, Timer.SESSION, member.member_id, member.classic.session_timeout_ms)
        assignment = classic_assignment(
            without_epochs(member.assigned), member.classic.protocols[0][1], self._metadata.image
        )
        return SyncGroupResponse(
            protocol_type=request.protocol_type, protocol_name=request.protocol_name, assignment=assignment
        )

    # Heartbeat

    def heartbeat(self, group: ConsumerGroup, identity: Identity) -> ErrorCode:
        """Keep a member's session, and tell it whether it has to join again."""
        try:
            member = self._classic_member(group, identity)
        except KafkaError as problem:
            return problem.code
        assert member.classic is not None
        self._timeouts.start(group, Timer.SESSION, member.member_id, member.classic.session_timeout_ms)
        if not _is_to_join(group, member):
            return ErrorCode.NONE
        self._expect_join(group, member)
        return ErrorCode.REBALANCE_IN_PROGRESS

    def _expect_join(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        self._timeouts.start_unless_running(group, Timer.JOIN, member.member_id, member.rebalance_timeout_ms)

    def _classic_member(self, group: ConsumerGroup, identity: Identity) -> ConsumerMember:
        member = known_member(group.contents, group.group_id, identity.group_instance_id, identity.member_id)
        if member.classic is None:
            raise unknown_member(identity.member_id, group.group_id)
        if member.member_epoch != identity.generation_id:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        return member

    # LeaveGroup

    def leave(self, group: ConsumerGroup, members: Sequence[MemberIdentity]) -> LeaveAnswer:
        """Take members out, whichever protocol they speak, by id or by instance id; one code each."""
        codes: list[ErrorCode] = []
        leaving: dict[str, None] = {}
        for identity in members:
            try:
                leaving[self._leaving(group, identity)] = None
                codes.append(ErrorCode.NONE)
            except KafkaError as problem:
                codes.append(problem.code)
        waiting = self._departures.remove(group, list(leaving))
        return answered(waiting, codes, lambda code: [each or code for each in codes])

    def _leaving(self, group: ConsumerGroup, identity: MemberIdentity) -> str:
        contents = group.contents
        member_id = identity.member_id
        if identity.group_instance_id is not None and not member_id:
            member_id = contents.statics.get(identity.group_instance_id, "")
        member = known_member(contents, group.group_id, identity.group_instance_id, member_id)
        log.info("group %s: %s leaves: %s", group.group_id, member_id, identity.reason or "not provided")
        return member.member_id


def _subscription(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    try:
        return read_subscription(request.protocols[0].metadata)
    except MalformedError as problem:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the subscription is malformed: {problem}") from None


def _described(
    member: ConsumerMember, request: JoinGroupRequest, joiner: Joiner, subscription: ConsumerProtocolSubscription
) -> ConsumerMember:
    """The member with what its request says; from now on it speaks the classic protocol."""
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


def _is_to_join(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether a member has to join again: to hear of a new epoch, to give partitions up, or to get what is free now."""
    contents = group.contents
    if member.member_epoch < contents.assignment_epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    return member.state is MemberState.UNRELEASED_PARTITIONS and not any(
        contents.owner(topic_id, partition) is not None
        for topic_id, partitions in contents.targets.get(member.member_id, {}).items()
        for partition in partitions
        if partition not in member.assigned.get(topic_id, {})
    )


def _protocol_name(member: ConsumerMember) -> str:
    assert member.classic is not None
    return member.classic.protocols[0][0]


def _joined(member: ConsumerMember) -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=member.member_epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=_protocol_name(member),
        member_id=member.member_id,
    )
