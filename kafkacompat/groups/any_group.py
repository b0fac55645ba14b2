"""What groups have in common, whichever protocol their members speak: what they have committed."""

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
class Identity:
    """Who a request says it comes from.

    In a consumer group ``generation_id`` is the member's epoch; ``knows_epochs`` says whether the request is of a
    version that was made for that.
    """

    member_id: str
    group_instance_id: str | None
    generation_id: int
    knows_epochs: bool = True

    @property
    def is_nobody(self) -> bool:
        """Whether no member is named."""
        return self.generation_id < 0 and not self.member_id and self.group_instance_id is None


class AnyGroup(ABC):
    """A group. ``is_logged`` says whether anything of it is in the log, or on its way there."""

    TYPE: ClassVar[str]
    """What ListGroups calls its type."""

    def __init__(self, group_id: str, shard: Shard) -> None:
        self.group_id = group_id
        self.shard = shard
        self.offsets = OffsetTable()
        self.is_logged = False

    @property
    @abstractmethod
    def state_name(self) -> str:
        """Its state as clients are told."""

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Whether it has no members; it may have offsets."""

    @property
    @abstractmethod
    def is_expected(self) -> bool:
        """Whether somebody is on the way in."""

    @property
    @abstractmethod
    def told_protocol_type(self) -> str:
        """What its members are by their own word; "" when there never were any."""

    @property
    @abstractmethod
    def is_of_consumers(self) -> bool:
        """Whether its members are consumers, so that it is known which topics they read."""

    @abstractmethod
    def is_subscribed(self, topic: str) -> bool:
        """Whether the group reads *topic*; in doubt a group of consumers does."""

    @abstractmethod
    def kept_since(self, commit_timestamp_ms: int) -> int | None:
        """From when on a commit of that time is kept; None while none may expire."""

    @abstractmethod
    def check_commit(self, identity: Identity, partitions: Iterable[tuple[bytes, int]]) -> ErrorCode:
        """Whether this committer may store offsets for all of these partitions (topic id, number) now."""

    @abstractmethod
    def check_commit_in_transaction(self, identity: Identity, partitions: Iterable[tuple[bytes, int]]) -> ErrorCode:
        """As `check_commit`, for offsets that count once a transaction is committed.

        Whoever names nobody may: producers before KIP-447 know no group, and the transaction fences them.
        """

    @abstractmethod
    def check_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Whether who says to be this member may read offsets; without an id and with a negative epoch anybody may."""

    @abstractmethod
    def tombstones(self) -> list[Record]:
        """The records that delete the group, but for its offsets."""

    @abstractmethod
    def clear(self) -> object:
        """Take everybody out."""

    @abstractmethod
    def restore(self) -> None:
        """Bring back an empty group whose deletion did not reach the log."""
