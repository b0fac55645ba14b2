"""The classic protocol (JoinGroup, SyncGroup, Heartbeat, LeaveGroup), which members of either kind of group may speak."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from twisted.internet.defer import Deferred

from kafkacompat.wire.apis.join_group import JoinGroupResponse
from kafkacompat.wire.apis.sync_group import SyncGroupResponse
from kafkacompat.wire.errors import ErrorCode

CONSUMER_PROTOCOL_TYPE = "consumer"

Protocols: TypeAlias = "tuple[tuple[str, bytes], ...]"
"""(name, metadata) of each assignor that a member supports, the preferred one first."""

PROTOCOL_BYTES = 150

JoinAnswer: TypeAlias = "JoinGroupResponse | Deferred[JoinGroupResponse]"
SyncAnswer: TypeAlias = "SyncGroupResponse | Deferred[SyncGroupResponse]"
LeaveAnswer: TypeAlias = "list[ErrorCode] | Deferred[list[ErrorCode]]"


@dataclass(frozen=True, slots=True)
class Joiner:
    """The sender of a JoinGroup.

    ``requires_member_id``: a new dynamic member receives an id first and joins with it (version 4).
    ``can_skip_assignment``: the response can tell a leader that rejoins to keep the assignment (version 9).
    """

    client_id: str
    client_host: str
    requires_member_id: bool
    can_skip_assignment: bool


def protocols_size_bytes(protocols: Protocols) -> int:
    """Return about how much memory a member's protocols take."""
    return sum(PROTOCOL_BYTES + len(name) + len(metadata) for name, metadata in protocols)


def build_join_refusal(code: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    """Return the response to a rejected JoinGroup."""
    return JoinGroupResponse(error_code=code, member_id=member_id)


def build_sync_refusal(code: ErrorCode) -> SyncGroupResponse:
    """Return the response to a rejected SyncGroup."""
    return SyncGroupResponse(error_code=code)
