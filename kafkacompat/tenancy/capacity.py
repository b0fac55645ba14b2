"""What an instance stores: the bytes on this broker and on the others, its limit, and moves that even out full disks.

The limit holds for the sum over all brokers. No broker has a part of the limit, so that none can be full before the instance is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from kafkacompat.config.instances import NO_LIMIT, Instance
from kafkacompat.wire.errors import ErrorCode, KafkaError

STORAGE_ERRORS = {"retriable": ErrorCode.NOT_ENOUGH_REPLICAS, "final": ErrorCode.POLICY_VIOLATION}
"""By limit.storage.error.

Every client that retries at all retries NOT_ENOUGH_REPLICAS, knows from it that nothing was appended, and does not look for another
leader. POLICY_VIOLATION is final for all of them.
"""


class HeldBackError(KafkaError):
    """A batch that the instance has no room for. Its retriable form is answered late, as clients send the batch again at once."""

    @property
    def is_retriable(self) -> bool:
        """Whether clients send the batch again."""
        return self.code is STORAGE_ERRORS["retriable"]


class StorageAccount:
    """The stored bytes of one instance.

    ``stored_bytes`` are those on this broker: of all its replicas if ``counts_replicas`` is set, otherwise of the partitions that it
    leads. ``elsewhere_bytes`` are those on the other brokers, as the controller has reported them last; 0 on a single node.
    """

    __slots__ = ("_error", "_limit_bytes", "counts_replicas", "elsewhere_bytes", "stored_bytes")

    def __init__(self, instance: Instance) -> None:
        self.stored_bytes = 0
        self.elsewhere_bytes = 0
        self.configure(instance)

    def configure(self, instance: Instance) -> None:
        """Use the properties of the instance from now on."""
        self._limit_bytes = instance.int("limit.storage.bytes")
        self._error = STORAGE_ERRORS[instance.string("limit.storage.error")]
        self.counts_replicas = instance.string("limit.storage.counts") == "replicas"

    @property
    def total_bytes(self) -> int:
        """The stored bytes on all brokers, as far as this broker knows."""
        return self.stored_bytes + self.elsewhere_bytes

    @property
    def has_limit(self) -> bool:
        """Whether the instance may be full at all."""
        return self._limit_bytes != NO_LIMIT

    @property
    def is_full(self) -> bool:
        """Whether producing is held back."""
        return self._limit_bytes != NO_LIMIT and self.stored_bytes + self.elsewhere_bytes >= self._limit_bytes

    def check_room(self) -> None:
        """Raise HeldBackError if the instance is full."""
        if self.is_full:
            reason = f"{self.total_bytes} bytes are stored and limit.storage.bytes is {self._limit_bytes}"
            advice = "delete records or topics, or wait until retention deletes records"
            raise HeldBackError(self._error, f"{reason}: {advice}")

    def note_total(self, total_bytes: int, reported_bytes: int) -> None:
        """Note the sum over all brokers, to which this broker had reported *reported_bytes*."""
        self.elsewhere_bytes = max(0, total_bytes - reported_bytes)


class BrokerDisk(NamedTuple):
    """The disks of one broker: the bytes in use and the bytes that they hold."""

    used_bytes: int
    size_bytes: int


class StoredReplica(NamedTuple):
    """A partition of an instance, the brokers that have a replica of it, and the bytes of one replica."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    size_bytes: int


class CapacityMove(NamedTuple):
    """A replica that goes from a fuller broker to an emptier one; ``replicas`` are those after the move."""

    topic: str
    partition: int
    source: int
    target: int
    size_bytes: int
    replicas: tuple[int, ...]


TOLERANCE = 0.05
"""Part of its size by which a broker may be fuller than another one without a move."""


def plan_capacity_moves(
    disks: Mapping[int, BrokerDisk],
    replicas: Sequence[StoredReplica],
    group: Collection[int],
    *,
    racks: Mapping[int, str | None] | None = None,
    max_moves: int = 100,
) -> list[CapacityMove]:
    """Plan moves of replicas from the fuller to the emptier brokers of a *group*, at most *max_moves*.

    The plan ends when the fullest and the emptiest broker differ by less than `TOLERANCE` of their size, or when no move brings
    brokers closer together. A replica never goes to a broker that has one of the same partition, nor, if *racks* are given, to a rack
    that has another one. The leader's place in the order of replicas stays.
    """
    used = {node: float(disks[node].used_bytes) for node in group if node in disks and disks[node].size_bytes > 0}
    sizes = {node: disks[node].size_bytes for node in used}
    held = _list_held(replicas, used)
    moves: list[CapacityMove] = []
    while len(moves) < max_moves:
        move = _find_move(used, sizes, held, racks or {})
        if move is None:
            break
        moves.append(move)
        used[move.source] -= move.size_bytes
        used[move.target] += move.size_bytes
        moved = StoredReplica(move.topic, move.partition, move.replicas, move.size_bytes)
        for node in {*move.replicas, move.source} & held.keys():
            held[node].pop((move.topic, move.partition), None)
        for node in set(move.replicas) & held.keys():
            held[node][move.topic, move.partition] = moved
    return moves


def _list_held(
    replicas: Sequence[StoredReplica], nodes: Collection[int]
) -> dict[int, dict[tuple[str, int], StoredReplica]]:
    """List the replicas of each broker, the largest first."""
    held: dict[int, dict[tuple[str, int], StoredReplica]] = {node: {} for node in nodes}
    for replica in sorted(replicas, key=lambda replica: (-replica.size_bytes, replica.topic, replica.partition)):
        for node in replica.replicas:
            if node in held and replica.size_bytes > 0:
                held[node][replica.topic, replica.partition] = replica
    return held


def _find_move(
    used: Mapping[int, float],
    sizes: Mapping[int, int],
    held: Mapping[int, Mapping[tuple[str, int], StoredReplica]],
    racks: Mapping[int, str | None],
) -> CapacityMove | None:
    """Find a move after which both brokers are less full than the source was, or None.

    It is from the fullest possible broker to the emptiest one, of the largest possible replica.
    """
    by_fullness = sorted(used, key=lambda node: (used[node] / sizes[node], node))
    for source in reversed(by_fullness):
        for target in by_fullness:
            if used[source] / sizes[source] - used[target] / sizes[target] <= TOLERANCE:
                break
            for replica in held[source].values():
                after_source = (used[source] - replica.size_bytes) / sizes[source]
                after_target = (used[target] + replica.size_bytes) / sizes[target]
                if max(after_source, after_target) < used[source] / sizes[source] and _may_hold(
                    replica, source, target, racks
                ):
                    after = tuple(target if node == source else node for node in replica.replicas)
                    return CapacityMove(replica.topic, replica.partition, source, target, replica.size_bytes, after)
    return None


def _may_hold(replica: StoredReplica, source: int, target: int, racks: Mapping[int, str | None]) -> bool:
    if target in replica.replicas:
        return False
    rack = racks.get(target)
    return rack is None or all(racks.get(node) != rack for node in replica.replicas if node != source)
