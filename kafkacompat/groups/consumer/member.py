"""One member of a consumer group, as a value: a change makes another one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum, auto
from typing import TypeAlias

from kafkacompat.groups.classic_protocol import Protocols, protocols_size_bytes

Assignment: TypeAlias = "Mapping[bytes, frozenset[int]]"
"""Partitions by topic id; no topic without partitions."""

Holding: TypeAlias = "Mapping[bytes, Mapping[int, int]]"
"""Partitions by topic id, and for each the epoch in which it was given to the member (KIP-1251)."""

NO_EPOCH = -1
JOINING_EPOCH = 0
LEAVING_EPOCH = -1
STATIC_LEAVING_EPOCH = -2

OBJECT_BYTES = 1500
NAME_BYTES = 60
PARTITION_BYTES = 40


class MemberState(IntEnum):
    """Where a member stands between what it has and what it shall have, by the numbers in the log."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127

    @classmethod
    def read(cls, number: int) -> MemberState:
        """The state of a number; one that a newer Kafka wrote may have no meaning here."""
        return cls(number) if number in _NUMBERS else cls.UNKNOWN


_NUMBERS = frozenset(MemberState)


class Timer(Enum):
    """What a member's time may run out for; the last two are for members of the classic protocol."""

    SESSION = auto()
    REBALANCE = auto()
    JOIN = auto()
    SYNC = auto()


@dataclass(frozen=True, slots=True)
class ClassicMetadata:
    """What a member has besides that speaks the classic protocol, with JoinGroup, SyncGroup and Heartbeat."""

    session_timeout_ms: int
    protocols: Protocols


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """A member.

    ``assigned`` is what it may read, ``pending_revocation`` what it was told to give up and has not yet.
    ``previous_member_epoch`` is good for one more heartbeat, should the answer with the next one have been lost.
    ``pattern`` is a regular expression; empty, or null in a log of Kafka's, for none.
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
    def has_left_for_a_while(self) -> bool:
        """Whether this static member said that it will be back."""
        return self.member_epoch == STATIC_LEAVING_EPOCH

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether it has all, and only, what it shall have in *epoch*."""
        return self.state is MemberState.STABLE and self.member_epoch == epoch

    def epoch_of(self, topic_id: bytes, partition: int) -> int | None:
        """Since which epoch it has a partition, also one that it shall give up; None if it does not."""
        for holding in (self.assigned, self.pending_revocation):
            epoch = holding.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None

    @property
    def size_bytes(self) -> int:
        """About how much memory it takes, for the bound on all members together."""
        texts = (self.member_id, self.instance_id, self.rack_id, self.client_id, self.pattern, *self.topics)
        size_bytes = OBJECT_BYTES + sum(NAME_BYTES + len(text or "") for text in texts)
        size_bytes += PARTITION_BYTES * (count(self.assigned) + count(self.pending_revocation))
        return size_bytes + (protocols_size_bytes(self.classic.protocols) if self.classic else 0)


def count(partitions: Mapping[bytes, Collection[int]]) -> int:
    """How many partitions there are."""
    return sum(map(len, partitions.values()))


def without_epochs(holding: Holding) -> Assignment:
    """The same partitions, whenever they were given."""
    return {topic_id: frozenset(epochs) for topic_id, epochs in holding.items()}


def with_epoch(assignment: Assignment, epoch: int) -> Holding:
    """The same partitions, all given in *epoch*."""
    return {topic_id: dict.fromkeys(partitions, epoch) for topic_id, partitions in assignment.items()}
