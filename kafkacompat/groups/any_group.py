"""The interface of both kinds of groups, and the offsets that both have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from kafkacompat.groups.offset_table import OffsetTable

if TYPE_CHECKING:
    from kafkacompat.coordination.coordinator_log import Record
    from kafkacompat.coordination.shard import Shard
    from kafkacompat.wire.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class SenderIdentity:
    """The sender that a request names.

    In a consumer group ``generation_id`` is the member epoch. ``knows_epochs`` is False for versions of a request that are older
    than member epochs.
    """

    member_id: str
    group_instance_id: str | None
    generation_id: int
    knows_epochs: bool = True

    @property
    def is_nobody(self) -> bool:
        """Whether the request names no member."""
        return self.generation_id < 0 and not self.member_id and self.group_instance_id is None


class AnyGroup(ABC):
    """A group. ``is_logged`` is True if the log has a record of it, or a record is on its way there."""

    TYPE: ClassVar[str]
    """The group type in ListGroups."""

    def __init__(self, group_id: str, shard: Shard) -> None:
        self.group_id = group_id
        self.shard = shard
        self.offsets = OffsetTable()
        self.is_logged = False

    @property
    @abstractmethod
    def state_name(self) -> str:
        """The state, by the name that clients receive."""

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Whether the group has no members; it may have offsets."""

    @property
    @abstractmethod
    def member_count(self) -> int:
        """How many members the group has."""

    @property
    @abstractmethod
    def has_pending_members(self) -> bool:
        """Whether a member has an id and has not joined with it yet."""

    @property
    @abstractmethod
    def listed_protocol_type(self) -> str:
        """The protocol type that the members named; "" if there never was a member."""

    @property
    @abstractmethod
    def is_of_consumers(self) -> bool:
        """Whether its members are consumers, so that the coordinator knows which topics they read."""

    @abstractmethod
    def is_subscribed(self, topic: str) -> bool:
        """Return whether the group reads *topic*. A group of consumers whose subscription is unknown reads every topic."""

    @abstractmethod
    def retention_start_ms(self, commit_timestamp_ms: int) -> int | None:
        """Return when the retention of a commit made at *commit_timestamp_ms* starts; None while no offset may expire."""

    @abstractmethod
    def check_commit(self, identity: SenderIdentity, partitions: Iterable[tuple[bytes, int]]) -> ErrorCode:
        """Return NONE if *identity* may now commit offsets for all *partitions*, pairs of topic id and number."""

    @abstractmethod
    def check_commit_in_transaction(
        self, identity: SenderIdentity, partitions: Iterable[tuple[bytes, int]]
    ) -> ErrorCode:
        """As `check_commit`, for offsets that become visible when a transaction is committed.

        A request that names no member is accepted: producers before KIP-447 name none, and the transaction fences them.
        """

    @abstractmethod
    def check_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Return NONE if this member may read offsets. A request without a member id and with a negative epoch always may."""

    @abstractmethod
    def tombstones(self) -> list[Record]:
        """Return the records that delete the group, without its offsets."""

    @abstractmethod
    def remove_all_members(self) -> object:
        """Remove all members."""

    @abstractmethod
    def restore_deleted(self) -> None:
        """Restore an empty group after the log rejected its deletion."""
