"""One member of a consumer group, as an immutable value."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum, auto
from typing import TypeAlias

from kafkacompat.groups.classic_protocol import Protocols, protocols_size_bytes

Assignment: TypeAlias = "Mapping[bytes, frozenset[int]]"
"""Partitions by topic id; no topic without partitions."""

Holding: TypeAlias = "Mapping[bytes, Mapping[int, int]]"
"""Partitions by topic id, each with the epoch in which it was assigned to the member (KIP-1251)."""

NO_EPOCH = -1
JOINING_EPOCH = 0
LEAVING_EPOCH = -1
STATIC_LEAVING_EPOCH = -2

OBJECT_BYTES = 1500
NAME_BYTES = 60
PARTITION_BYTES = 40


class MemberState(IntEnum):
    """How far a member is reconciled with its target, by the numbers in the log."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127

    @classmethod
    def from_number(cls, number: int) -> MemberState:
        """Return the state of a number; UNKNOWN for a number that a newer Kafka wrote."""
        return cls(number) if number in _NUMBERS else cls.UNKNOWN


_NUMBERS = frozenset(MemberState)


class MemberTimer(Enum):
    """What a member may be too late for; JOIN and SYNC are for members of the classic protocol."""

    SESSION = auto()
    REBALANCE = auto()
    JOIN = auto()
    SYNC = auto()


@dataclass(frozen=True, slots=True)
class ClassicMetadata:
    """The additional fields of a member that speaks the classic protocol."""

    session_timeout_ms: int
    protocols: Protocols


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """A member.

    ``assigned`` has the partitions that it may read, ``pending_revocation`` those that it has to give up and still reads.
    A heartbeat may still name ``previous_member_epoch``, as the response with the current epoch may be lost. ``pattern`` is a
    regular expression; empty, or None in a log that Kafka wrote, if the member has none.
    """

    member_id: str
    member_epoch: int = JOINING_EPOCH
    previous_member_epoch: int = NO_EPOCH
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    pattern: str | None = ""
    assignor: str | None = None
    assigned: Holding = field(default_factory=dict)
    pending_revocation: Holding = field(default_factory=dict)
    classic: ClassicMetadata | None = None

    @property
    def has_left_temporarily(self) -> bool:
        """Whether this static member has left temporarily."""
        return self.member_epoch == STATIC_LEAVING_EPOCH

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return whether its assignment is its target of *epoch*."""
        return self.state is MemberState.STABLE and self.member_epoch == epoch

    def assignment_epoch(self, topic_id: bytes, partition: int) -> int | None:
        """Return the epoch in which it was assigned a partition, also one pending revocation; None if it does not have it."""
        for holding in (self.assigned, self.pending_revocation):
            epoch = holding.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None

    @property
    def size_bytes(self) -> int:
        """About how much memory it takes, for the limit on all members together."""
        texts = (self.member_id, self.instance_id, self.rack_id, self.client_id, self.pattern, *self.topics)
        size_bytes = OBJECT_BYTES + sum(NAME_BYTES + len(text or "") for text in texts)
        size_bytes += PARTITION_BYTES * (count_partitions(self.assigned) + count_partitions(self.pending_revocation))
        return size_bytes + (protocols_size_bytes(self.classic.protocols) if self.classic else 0)


def count_partitions(partitions: Mapping[bytes, Collection[int]]) -> int:
    """Return the number of partitions."""
    return sum(map(len, partitions.values()))


def as_assignment(holding: Holding) -> Assignment:
    """Return the same partitions without their epochs."""
    return {topic_id: frozenset(epochs) for topic_id, epochs in holding.items()}


def as_holding(assignment: Assignment, epoch: int) -> Holding:
    """Return the same partitions, all assigned in *epoch*."""
    return {topic_id: dict.fromkeys(partitions, epoch) for topic_id, partitions in assignment.items()}
