"""OffsetCommit and OffsetFetch.

A commit is visible, and answered, once its record is in the log. A fetch waits for the commits that were on
their way before it: so nobody reads behind what it wrote, and an offset that was seen is durable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from twisted.internet.defer import Deferred

from kafkacompat.groups.any_group import AnyGroup, Identity
from kafkacompat.groups.group import Group, MemoryBudget
from kafkacompat.groups.offsets import NO_TIMESTAMP, CommittedOffset, OffsetTable
from kafkacompat.groups.rebalance import Rebalance
from kafkacompat.groups.records import offset_record
from kafkacompat.groups.settings import GroupSettings
from kafkacompat.groups.shard import Registry, Shard
from kafkacompat.groups.state import PREPARING_REBALANCE, STABLE
from kafkacompat.timers import Clock, now_ms
from kafkacompat.wire.errors import ErrorCode

NO_RETENTION_TIME = -1
MAX_INT64 = 0x7FFFFFFFFFFFFFFF


class OffsetToCommit(NamedTuple):
    """One partition's part of an OffsetCommit.

    ``metadata`` None counts as empty, ``commit_timestamp_ms`` -1 as now: only version 1 says when.
    """

    topic: str
    topic_id: bytes
    partition: int
    offset: int
    leader_epoch: int
    metadata: str | None
    commit_timestamp_ms: int = NO_TIMESTAMP


class FetchedOffsets(NamedTuple):
    """A group's offsets, as they are now; empty for a group that is not known, or with an error."""

    error_code: ErrorCode
    offsets: OffsetTable


CommitAnswer: TypeAlias = "list[ErrorCode] | Deferred[list[ErrorCode]]"
FetchAnswer: TypeAlias = "FetchedOffsets | Deferred[FetchedOffsets]"

_Accepted: TypeAlias = "list[tuple[str, int, CommittedOffset]]"


class Commits:
    """Stores and reads committed offsets."""

    def __init__(
        self,
        clock: Clock,
        settings: GroupSettings,
        registry: Registry,
        rebalance: Rebalance,
        budget: MemoryBudget,
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._registry = registry
        self._rebalance = rebalance
        self._budget = budget

    def commit(
        self, group_id: str, identity: Identity, offsets: Sequence[OffsetToCommit], retention_time_ms: int
    ) -> CommitAnswer:
        """Store offsets; one code each. The empty group id is allowed, as in Kafka.

        A group that does not exist comes to be when the committer names no generation; for one that does,
        the code is GROUP_ID_NOT_FOUND, which the caller translates for old clients.
        """
        group = self._registry.find(group_id)
        error = self._check(group, identity, offsets)
        if error:
            return [error] * len(offsets)
        if isinstance(group, Group) and group.state in (STABLE, PREPARING_REBALANCE):
            self._rebalance.restart_session(group, group.members[identity.member_id])
        codes = [check_metadata(each.metadata, self._settings.offset_metadata_max_bytes) for each in offsets]
        at_ms = now_ms(self._clock)
        expires_ms = (
            NO_TIMESTAMP if retention_time_ms == NO_RETENTION_TIME else min(at_ms + retention_time_ms, MAX_INT64)
        )
        accepted = [_accept(each, at_ms, expires_ms) for each, code in zip(offsets, codes, strict=True) if not code]
        return self._store(group_id, accepted, codes) if accepted else codes

    def _check(self, group: AnyGroup | ErrorCode, identity: Identity, offsets: Sequence[OffsetToCommit]) -> ErrorCode:
        if isinstance(group, AnyGroup):
            return group.check_commit(identity, ((each.topic_id, each.partition) for each in offsets))
        if not group and identity.generation_id >= 0:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return group

    def _store(self, group_id: str, accepted: _Accepted, codes: list[ErrorCode]) -> CommitAnswer:
        shard = self._registry.shard_for(group_id)
        group = self._registry.groups.get(group_id)
        table = group.offsets if group is not None else OffsetTable()
        table.commits_in_flight += 1
        if group is not None:
            group.is_logged = True
        written = shard.writer.write(
            [offset_record(group_id, *each, with_topic_id=self._settings.stores_topic_ids) for each in accepted],
            lambda outcome: self._decided(group_id, table, shard, accepted, outcome),
        )
        return written.addCallback(lambda outcome: [code or outcome for code in codes])

    def _decided(
        self, group_id: str, table: OffsetTable, shard: Shard, accepted: _Accepted, outcome: ErrorCode
    ) -> None:
        """Make a commit that is in the log visible; a group of this name comes to be if need be."""
        table.commits_in_flight -= 1
        if outcome or not shard.is_active:
            return
        group = self._registry.groups.get(group_id)
        if group is None:
            group = Group(group_id, shard, self._budget, now_ms(self._clock))
            self._registry.groups[group_id] = group
        group.is_logged = True
        for topic, partition, committed in accepted:
            group.offsets.put(topic, partition, committed)

    def fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> FetchAnswer:
        """Read a group's offsets once every commit before this call is in the log or refused."""
        error = self._registry.check(group_id)
        if error:
            return FetchedOffsets(error, OffsetTable())
        waiting = self._registry.shard_for(group_id).writer.settled()
        if waiting is None:
            return self._fetch(group_id, member_id, member_epoch)
        return waiting.addCallback(self._fetch_settled, group_id, member_id, member_epoch)

    def _fetch_settled(
        self, is_settled: bool, group_id: str, member_id: str | None, member_epoch: int
    ) -> FetchedOffsets:
        if not is_settled:
            # Kafka's code for this: consumers before 3.9 do not try again after any other.
            return FetchedOffsets(ErrorCode.NOT_COORDINATOR, OffsetTable())
        return self._fetch(group_id, member_id, member_epoch)

    def _fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> FetchedOffsets:
        group = self._registry.find(group_id)
        if isinstance(group, ErrorCode):
            return FetchedOffsets(group, OffsetTable())
        error = group.check_fetch(member_id, member_epoch)
        return FetchedOffsets(error, OffsetTable() if error else group.offsets)


def check_metadata(metadata: str | None, limit: int) -> ErrorCode:
    """Whether what a client keeps beside an offset is short enough; *limit* counts UTF-16 units, as Java does."""
    if metadata is None or (len(metadata) <= limit and len(metadata.encode("utf-16-le")) // 2 <= limit):
        return ErrorCode.NONE
    return ErrorCode.OFFSET_METADATA_TOO_LARGE


def _accept(each: OffsetToCommit, now_ms: int, expires_ms: int) -> tuple[str, int, CommittedOffset]:
    at_ms = now_ms if each.commit_timestamp_ms == NO_TIMESTAMP else each.commit_timestamp_ms
    committed = CommittedOffset(each.offset, each.leader_epoch, each.metadata or "", at_ms, expires_ms, each.topic_id)
    return each.topic, each.partition, committed
