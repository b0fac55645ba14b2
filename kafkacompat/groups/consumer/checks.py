"""Checks of a ConsumerGroupHeartbeat: of the request alone, and of its member, epoch and instance id in a group."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NoReturn

from kafkacompat.groups.consumer.contents import GroupContents
from kafkacompat.groups.consumer.member import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    STATIC_LEAVING_EPOCH,
    ConsumerMember,
    Holding,
)
from kafkacompat.groups.consumer.reconciliation import OwnedPartitions
from kafkacompat.groups.consumer.settings import ConsumerGroupSettings
from kafkacompat.wire.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkacompat.wire.errors import ErrorCode, KafkaError

NOT_GIVEN = -1


def parse_owned_partitions(request: ConsumerGroupHeartbeatRequest) -> OwnedPartitions:
    """Return the partitions that the member reports to own, None if it reports none."""
    if request.topic_partitions is None:
        return None
    owned: dict[bytes, frozenset[int]] = {}
    for part in request.topic_partitions:
        owned[part.topic_id] = owned.get(part.topic_id, frozenset()) | frozenset(part.partitions)
    return owned


def check_groups_served(settings: ConsumerGroupSettings) -> None:
    """Raise KafkaError UNSUPPORTED_VERSION if this broker serves no consumer groups."""
    if not settings.is_served:
        message = "this broker serves no consumer groups: add consumer to group.coordinator.rebalance.protocols"
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)


def check_heartbeat_request(
    request: ConsumerGroupHeartbeatRequest, assignors: Collection[str], *, needs_member_id: bool
) -> None:
    """Check the request by itself. Raises KafkaError: INVALID_REQUEST, UNSUPPORTED_ASSIGNOR."""
    epoch = request.member_epoch
    if needs_member_id or epoch > 0 or epoch == LEAVING_EPOCH:
        _check_not_blank(request.member_id, "member_id")
    _check_not_blank(request.group_id, "group_id")
    _check_not_blank(request.instance_id, "instance_id")
    _check_not_blank(request.rack_id, "rack_id")
    if epoch == JOINING_EPOCH:
        _check_joining(request)
    elif epoch == STATIC_LEAVING_EPOCH and request.instance_id is None:
        _reject_request(f"a member that leaves with epoch {STATIC_LEAVING_EPOCH} needs an instance_id")
    elif epoch < STATIC_LEAVING_EPOCH:
        _reject_request(f"member_epoch={epoch} is not valid: it takes {STATIC_LEAVING_EPOCH} or more")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        known = ", ".join(assignors)
        message = f"server_assignor={request.server_assignor} is not served: choose one of {known}"
        raise KafkaError(ErrorCode.UNSUPPORTED_ASSIGNOR, message)


def _check_joining(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == NOT_GIVEN:
        _reject_request("a member that joins needs a rebalance_timeout_ms")
    if request.topic_partitions is None or request.topic_partitions:
        _reject_request("a member that joins must send an empty topic_partitions")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        _reject_request(
            "a member that joins needs subscribed_topic_names or a subscribed_topic_regex, which may be empty"
        )


def _check_not_blank(text: str | None, name: str) -> None:
    if text is not None and not text.strip():
        _reject_request(f"{name} must not be empty")


def _reject_request(message: str) -> NoReturn:
    raise KafkaError(ErrorCode.INVALID_REQUEST, message)


def check_group_size(contents: GroupContents, member_id: str, max_size: int) -> None:
    """Raise KafkaError GROUP_MAX_SIZE_REACHED for a new member of a full group."""
    if len(contents.members) >= max_size and member_id not in contents.members:
        raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, f"the group has {max_size} members, the maximum")


def check_member_epoch(member: ConsumerMember, epoch: int, owned: OwnedPartitions) -> None:
    """Raise KafkaError FENCED_MEMBER_EPOCH if *epoch* is not the member's.

    The previous epoch is valid too, because the response with the current one may be lost. The member then has to report that it
    owns no more than it is assigned. A member that joins (epoch 0) is always accepted.
    """
    if epoch in (JOINING_EPOCH, member.member_epoch):
        return
    is_previous = epoch == member.previous_member_epoch and epoch < member.member_epoch
    if is_previous and owned is not None and _is_within(owned, member.assigned):
        return
    message = f"the member epoch is {member.member_epoch}, not {epoch}: give up all partitions and rejoin"
    raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, message)


def _is_within(owned: Mapping[bytes, frozenset[int]], holding: Holding) -> bool:
    return all(topic_id in holding and partitions <= holding[topic_id].keys() for topic_id, partitions in owned.items())


def unknown_member_error(member_id: str, group_id: str) -> KafkaError:
    """Return the error UNKNOWN_MEMBER_ID."""
    return KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"{member_id} is not a member of group {group_id}")


def find_static_member(contents: GroupContents, group_id: str, instance_id: str, member_id: str) -> ConsumerMember:
    """Return the member of an instance id. Raises KafkaError: UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID for another member's."""
    member = contents.find_static_member(instance_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {group_id} has no member with instance id {instance_id}")
    if member.member_id != member_id:
        message = f"instance id {instance_id} now belongs to member {member.member_id}, not to {member_id}"
        raise KafkaError(ErrorCode.FENCED_INSTANCE_ID, message)
    return member


def find_member(contents: GroupContents, group_id: str, instance_id: str | None, member_id: str) -> ConsumerMember:
    """Return the member that sent a request. Raises KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
    if instance_id is not None:
        return find_static_member(contents, group_id, instance_id, member_id)
    member = contents.members.get(member_id)
    if member is None:
        raise unknown_member_error(member_id, group_id)
    return member
