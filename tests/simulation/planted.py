"""Bugs to plant: known mistakes of replication; the simulation has to find each of them.

Each replaces a function of the broker's classes in this process only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

from twisted.internet.defer import Deferred

from kafkacompat.cluster.election import ControllerElection
from kafkacompat.metadata.zookeeper_store import ZooKeeperStore
from kafkacompat.partitions.follower import FollowerPartition
from kafkacompat.partitions.leadership import InSyncSet, LeaderState
from kafkacompat.partitions.partition import Partition
from kafkacompat.partitions.partition_appender import PartitionAppender
from kafkacompat.partitions.partition_state import PartitionState
from kafkacompat.replication.fetch_state import FETCHING
from kafkacompat.replication.log_changes import Truncate
from kafkacompat.replication.partition_fetch import PartitionFetch
from kafkacompat.transactions.marker_sender import MarkerSender
from kafkacompat.wire.errors import ErrorCode


class Plant(NamedTuple):
    """A bug: what it does, and the attributes that it replaces, as (owner, name, replacement)."""

    description: str
    replacements: list[tuple[Any, str, Any]]


def _begin_at_high_watermark(self: PartitionFetch, now_s: float) -> Any:
    partition = self.partition
    high_watermark = max(partition.high_watermark, partition.log_start_offset)
    if high_watermark < partition.log_end_offset:
        return self._change_log(Truncate(high_watermark), FETCHING)
    return self._fetch(now_s)


def _take_leaders_end(self: PartitionFetch, leader_epoch: int, end_offset: int) -> tuple[int, bool]:
    partition = self.partition
    return min(max(end_offset, partition.log_start_offset), partition.log_end_offset), True


_resign = ControllerElection._resign


def _resign_when_stopped(self: ControllerElection) -> None:
    if self._stopped:
        _resign(self)


_begin_store = ZooKeeperStore.__init__


def _begin_without_fence(self: ZooKeeperStore, client: Any, clock: Any, fence: Any = None) -> None:
    _begin_store(self, client, clock)


def _count_proposed(self: InSyncSet) -> frozenset[int]:
    return self.committed if self.proposed is None else self.proposed


_begin_partition = Partition.__init__


def _begin_at_end(self: Partition, opened: Any, host: Any, leader_epoch: int, high_watermark: Any = None) -> None:
    _begin_partition(self, opened, host, leader_epoch, None if high_watermark is None else opened.end_position())


_propose_expansion = LeaderState.propose_expansion


def _propose_early(self: LeaderState, replica: int, high_watermark: int, broker_epochs: Any) -> Any:
    start, self.epoch_start_offset = self.epoch_start_offset, 0
    try:
        return _propose_expansion(self, replica, high_watermark, broker_epochs)
    finally:
        self.epoch_start_offset = start


_send_marker = MarkerSender._send_to


def _drop_marker(self: MarkerSender, leader: int, marker: Any, partitions: list[Any]) -> Iterator[Deferred[Any]]:
    if leader < 0:
        done: Deferred[Any] = Deferred()
        done.callback(dict.fromkeys(partitions, ErrorCode.NONE))
        yield done
    else:
        yield from _send_marker(self, leader, marker, partitions)


def _answer_at_once(self: PartitionAppender, result: Any, size_bytes: int) -> Any:
    self._state.host.commit.join(self)
    if self._state.is_replicated:
        self._progress.advance()
    else:
        self._state.raise_high_watermark(result.end)
    return result


PLANTS: Mapping[str, Plant] = {
    "truncate-to-high-watermark": Plant(
        "a follower truncates its log to its own high watermark (KIP-101)",
        [(PartitionFetch, "begin", _begin_at_high_watermark)],
    ),
    "unknown-epoch": Plant(
        "a follower truncates to the leader's end of an epoch that only the leader knows (KIP-279)",
        [(PartitionFetch, "_find_truncation", _take_leaders_end)],
    ),
    "expired-controller": Plant(
        "a controller goes on after its session has expired, and its writes are not fenced",
        [(ControllerElection, "_resign", _resign_when_stopped), (ZooKeeperStore, "__init__", _begin_without_fence)],
    ),
    "unconfirmed-shrink": Plant(
        "a smaller in-sync set counts before the controller has confirmed it (KIP-497)",
        [(InSyncSet, "counted", property(_count_proposed))],
    ),
    "high-watermark-from-end": Plant(
        "a replica's high watermark is its log's end after a start",
        [(Partition, "__init__", _begin_at_end)],
    ),
    "early-rejoin": Plant(
        "a follower joins the in-sync set before it has reached the start of the leader epoch",
        [(LeaderState, "propose_expansion", _propose_early)],
    ),
    "dropped-marker": Plant(
        "a transaction's marker for a partition without a known leader is dropped (KAFKA-5202)",
        [(MarkerSender, "_send_to", _drop_marker)],
    ),
    "early-answer": Plant(
        "with acks.after=fsync an append counts before it is on the disk",
        [
            (PartitionAppender, "_wait_for_sync", _answer_at_once),
            (PartitionState, "own_end_offset", lambda self: self.log.log_end_offset),
            (FollowerPartition, "reported_end_offset", property(lambda self: self._state.log.log_end_offset)),
            (FollowerPartition, "_needs_sync", lambda self, end: False),
        ],
    ),
}


@contextmanager
def plant(name: str | None) -> Iterator[None]:
    """Plant a bug for a while; None for none."""
    with ExitStack() as patches:
        for owner, attribute, replacement in PLANTS[name].replacements if name is not None else ():
            patches.enter_context(patch.object(owner, attribute, replacement))
        yield
