"""One member of a classic group."""

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
class ClassicMember:
    """A member and the responses that it waits for.

    ``group_instance_id`` is None for a dynamic member (KIP-345 calls the others static). ``is_new`` is True until the member's
    first generation has started. ``session`` fires when the member has sent nothing for its session timeout.
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
    def session_may_expire(self) -> bool:
        """Whether the session may expire. It may not while the member waits for a response and so cannot send heartbeats.

        The session of a new member may: nothing else would ever remove it if its client were gone.
        """
        return self.is_new or (self.awaiting_join is None and self.awaiting_sync is None)

    @property
    def size_bytes(self) -> int:
        """About how much memory the member takes, for the limit on all members together."""
        texts = len(self.member_id) + len(self.group_instance_id or "") + len(self.client_id)
        return OBJECT_BYTES + texts + protocols_size_bytes(self.protocols)

    def metadata_for(self, protocol_name: str | None) -> bytes:
        """Return the member's metadata for one protocol; empty if it does not support the protocol."""
        return next((metadata for name, metadata in self.protocols if name == protocol_name), b"")

    def preferred_protocol(self, candidates: Container[str]) -> str:
        """Return the candidate that the member prefers; it has to support one of them."""
        return next(name for name, _ in self.protocols if name in candidates)
