"""One member of a group."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafkacompat.groups.classic_protocol import Protocols, protocols_size_bytes

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

    from kafkacompat.timers import DelayedCall
    from kafkacompat.wire.apis.join_group import JoinGroupResponse
    from kafkacompat.wire.apis.sync_group import SyncGroupResponse

OBJECT_BYTES = 1000


@dataclass(slots=True, eq=False)
class Member:
    """A member and what it waits for.

    ``group_instance_id`` is None for a dynamic member (KIP-345 calls the others static). ``is_new`` holds
    until the first generation the member takes part in has begun. ``session`` fires when nothing has been
    heard of the member for too long.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    awaiting_join: Deferred[JoinGroupResponse] | None = None
    awaiting_sync: Deferred[SyncGroupResponse] | None = None
    session: DelayedCall | None = field(default=None, repr=False)

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def may_expire(self) -> bool:
        """Whether silence counts: a member that waits for us to answer cannot send heartbeats.

        A new one is different: should its client be gone, nobody would ever take it out.
        """
        return self.is_new or (self.awaiting_join is None and self.awaiting_sync is None)

    @property
    def size_bytes(self) -> int:
        """About how much memory the member takes, for the bound on all members together."""
        texts = len(self.member_id) + len(self.group_instance_id or "") + len(self.client_id)
        return OBJECT_BYTES + texts + protocols_size_bytes(self.protocols)

    def metadata(self, protocol_name: str | None) -> bytes:
        """The subscription this member sent for one protocol; empty when it does not know the protocol."""
        return next((metadata for name, metadata in self.protocols if name == protocol_name), b"")

    def vote(self, candidates: Container[str]) -> str:
        """The candidate this member likes best; the caller makes sure that it knows one."""
        return next(name for name, _ in self.protocols if name in candidates)
