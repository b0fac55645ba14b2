"""The two kinds of groups, and the interface of the coordinator to either."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from kafkacompat.groups.any_group import AnyGroup, SenderIdentity
from kafkacompat.groups.classic.group import ClassicGroup
from kafkacompat.groups.classic.service import ClassicGroups
from kafkacompat.groups.classic_protocol import JoinAnswer, Joiner, LeaveAnswer, SyncAnswer
from kafkacompat.groups.consumer.group import ConsumerGroup
from kafkacompat.groups.consumer.service import ConsumerGroups
from kafkacompat.wire.apis.join_group import JoinGroupRequest
from kafkacompat.wire.apis.leave_group import MemberIdentity
from kafkacompat.wire.apis.sync_group import SyncGroupRequest
from kafkacompat.wire.errors import ErrorCode

_Group = TypeVar("_Group", bound=AnyGroup, contravariant=True)


class GroupService(Protocol[_Group]):
    """Serves the groups of one kind: the requests of the classic protocol, and the events of a group."""

    def join(self, group: _Group, request: JoinGroupRequest, joiner: Joiner) -> JoinAnswer:
        """JoinGroup."""
        ...

    def sync(self, group: _Group, request: SyncGroupRequest) -> SyncAnswer:
        """SyncGroup."""
        ...

    def heartbeat(self, group: _Group, identity: SenderIdentity) -> ErrorCode:
        """Heartbeat."""
        ...

    def leave(self, group: _Group, members: Sequence[MemberIdentity]) -> LeaveAnswer:
        """LeaveGroup: one code for each member."""
        ...

    def on_commit(self, group: _Group, identity: SenderIdentity) -> None:
        """Called when the group accepts the commit of a member."""
        ...

    def take_over(self, group: _Group) -> None:
        """Called when the group is loaded: start the timers of its members."""
        ...

    def forget(self, group: _Group, code: ErrorCode) -> None:
        """Remove the group from the registry; requests that wait for it are answered with *code*."""
        ...


class GroupKinds:
    """Finds the service of a group. No other place decides by a group's kind what serves it."""

    def __init__(self, classic: ClassicGroups, consumer: ConsumerGroups) -> None:
        self.classic = classic
        self.consumer = consumer
        self._services: Mapping[str, GroupService[Any]] = {ClassicGroup.TYPE: classic, ConsumerGroup.TYPE: consumer}

    def service_of(self, group: AnyGroup) -> GroupService[Any]:
        """Return the service that the group belongs to."""
        return self._services[group.TYPE]
