"""OffsetCommit, TxnOffsetCommit and OffsetFetch.

A commit is answered and visible once its record is in the log. A commit in a transaction is answered then too, and becomes
visible with the transaction's marker. A fetch waits for the commits that were under way before it. So a client never reads an
older offset than it committed, and every offset that a client has seen is durable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from twisted.internet.defer import Deferred

from kafkacompat.coordination.coordinator_log import LogProducer
from kafkacompat.coordination.shard import Shard
from kafkacompat.groups.any_group import AnyGroup, SenderIdentity
from kafkacompat.groups.committed_offset import NO_TIMESTAMP, CommittedOffset
from kafkacompat.groups.kinds import GroupKinds
from kafkacompat.groups.offset_records import offset_record
from kafkacompat.groups.offset_table import OffsetTable
from kafkacompat.groups.registry import GroupRegistry
from kafkacompat.groups.settings import GroupSettings
from kafkacompat.timers import Clock, now_ms
from kafkacompat.wire.errors import ErrorCode, KafkaError

NO_RETENTION_TIME = -1
MAX_INT64 = 0x7FFFFFFFFFFFFFFF


class OffsetToCommit(NamedTuple):
    """The offset of one partition in an OffsetCommit.

    ``metadata`` None means empty. ``commit_timestamp_ms`` -1 means now; only version 1 of the request names a time.
    """

    topic: str
    topic_id: bytes
    partition: int
    offset: int
    leader_epoch: int
    metadata: str | None
    commit_timestamp_ms: int = NO_TIMESTAMP


class FetchedOffsets(NamedTuple):
    """A group's current offsets; empty for an unknown group and with an error."""

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
        registry: GroupRegistry,
        kinds: GroupKinds,
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._registry = registry
        self._kinds = kinds

    def commit(
        self, group_id: str, identity: SenderIdentity, offsets: Sequence[OffsetToCommit], retention_time_ms: int
    ) -> CommitAnswer:
        """Store offsets; returns one code for each. The empty group id is valid, as in Kafka.

        If the group does not exist, a commit without a generation creates it. A commit with a generation is rejected with
        GROUP_ID_NOT_FOUND, which the caller translates for old clients.
        """
        group = self._registry.find(group_id)
        error = self._check(group, identity, offsets) or self._check_new(group, group_id)
        if error:
            return [error] * len(offsets)
        if isinstance(group, AnyGroup):
            self._kinds.service_of(group).on_commit(group, identity)
        at_ms = now_ms(self._clock)
        expires_ms = (
            NO_TIMESTAMP if retention_time_ms == NO_RETENTION_TIME else min(at_ms + retention_time_ms, MAX_INT64)
        )
        return self._accept(group_id, offsets, at_ms, expires_ms, None)

    def _check(
        self, group: AnyGroup | ErrorCode, identity: SenderIdentity, offsets: Sequence[OffsetToCommit]
    ) -> ErrorCode:
        if isinstance(group, AnyGroup):
            return group.check_commit(identity, _list_partitions(offsets))
        if not group and identity.generation_id >= 0:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return group

    def _check_new(self, group: AnyGroup | ErrorCode, group_id: str) -> ErrorCode:
        return ErrorCode.NONE if isinstance(group, AnyGroup) else self._registry.check_new(group_id)

    def commit_in_transaction(
        self, group_id: str, identity: SenderIdentity, producer: LogProducer, offsets: Sequence[OffsetToCommit]
    ) -> CommitAnswer:
        """Store offsets that become visible when a transaction is committed; returns one code for each."""
        group = self._registry.find(group_id)
        error = self._check_in_transaction(group, identity, offsets) or self._check_new(group, group_id)
        if error:
            return [error] * len(offsets)
        return self._accept(group_id, offsets, now_ms(self._clock), NO_TIMESTAMP, producer)

    def _check_in_transaction(
        self, group: AnyGroup | ErrorCode, identity: SenderIdentity, offsets: Sequence[OffsetToCommit]
    ) -> ErrorCode:
        if isinstance(group, AnyGroup):
            return group.check_commit_in_transaction(identity, _list_partitions(offsets))
        if not group and identity.generation_id >= 0:
            return ErrorCode.ILLEGAL_GENERATION
        return group

    def _accept(
        self,
        group_id: str,
        offsets: Sequence[OffsetToCommit],
        now_ms: int,
        expires_ms: int,
        producer: LogProducer | None,
    ) -> CommitAnswer:
        """Store the offsets whose metadata is short enough."""
        codes = [check_offset_metadata(offset.metadata, self._settings.offset_metadata_max_bytes) for offset in offsets]
        accepted = [
            _as_committed(offset, now_ms, expires_ms) for offset, code in zip(offsets, codes, strict=True) if not code
        ]
        return self._store(group_id, accepted, codes, producer) if accepted else codes

    def _store(
        self, group_id: str, accepted: _Accepted, codes: list[ErrorCode], producer: LogProducer | None
    ) -> CommitAnswer:
        shard = self._registry.shard_for(group_id)
        group = self._registry.by_id.get(group_id)
        table = group.offsets if group is not None else OffsetTable()
        table.commits_in_flight += 1
        if group is not None:
            group.is_logged = True

        def on_outcome(outcome: ErrorCode) -> None:
            table.commits_in_flight -= 1
            if not outcome and shard.is_active:
                self._apply(group_id, shard, accepted, producer)

        records = [
            offset_record(group_id, *offset, with_topic_id=self._settings.stores_topic_ids) for offset in accepted
        ]
        written = shard.writer.write(records, on_outcome, producer)
        return written.addCallback(lambda outcome: [code or outcome for code in codes])

    def _apply(self, group_id: str, shard: Shard, accepted: _Accepted, producer: LogProducer | None) -> None:
        """Make a commit that is in the log visible, or pending in its transaction; create the group if it does not exist."""
        group = self._registry.by_id.get(group_id) or self._kinds.classic.create(group_id, shard)
        group.is_logged = True
        if producer is not None:
            self._registry.transactions[shard.partition].add(producer.producer_id, group.offsets, accepted)
            return
        for topic, partition, committed in accepted:
            group.offsets.put(topic, partition, committed)

    def end_transaction(
        self, partition: int, producer_id: int, is_commit: bool, append: Callable[[], object]
    ) -> Deferred[ErrorCode]:
        """Write a marker to a partition of the offsets topic by *append*; its pending offsets become visible or are dropped.

        Fires with the log's own code, and does not fail. Raises KafkaError NOT_LEADER_OR_FOLLOWER if this broker does not lead
        the partition, or is still loading it.
        """
        shard = self._registry.shards.get(partition)
        if shard is None or shard.is_loading:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"the groups of partition {partition} are not loaded")
        written: Deferred[ErrorCode] = Deferred()

        def on_outcome(outcome: ErrorCode) -> None:
            if not outcome and shard.is_active:
                self._registry.transactions[partition].end_transaction(producer_id, is_commit=is_commit)
            written.callback(outcome)

        shard.writer.append_in_order(append, on_outcome)
        return written

    def fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> FetchAnswer:
        """Read a group's offsets, once the log has accepted or rejected every commit before this call."""
        error = self._registry.check(group_id)
        if error:
            return FetchedOffsets(error, OffsetTable())
        waiting = self._registry.shard_for(group_id).writer.wait_for_writes()
        if waiting is None:
            return self._fetch(group_id, member_id, member_epoch)
        return waiting.addCallback(self._fetch_settled, group_id, member_id, member_epoch)

    def _fetch_settled(
        self, is_settled: bool, group_id: str, member_id: str | None, member_epoch: int
    ) -> FetchedOffsets:
        if not is_settled:
            # Kafka's code for this case: consumers before 3.9 retry after no other code.
            return FetchedOffsets(ErrorCode.NOT_COORDINATOR, OffsetTable())
        return self._fetch(group_id, member_id, member_epoch)

    def _fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> FetchedOffsets:
        group = self._registry.find(group_id)
        if isinstance(group, ErrorCode):
            return FetchedOffsets(group, OffsetTable())
        error = group.check_fetch(member_id, member_epoch)
        return FetchedOffsets(error, OffsetTable() if error else group.offsets)


def check_offset_metadata(metadata: str | None, limit: int) -> ErrorCode:
    """Return NONE if the metadata of an offset has at most *limit* UTF-16 units, which is how Java counts."""
    if metadata is None or (len(metadata) <= limit and len(metadata.encode("utf-16-le")) // 2 <= limit):
        return ErrorCode.NONE
    return ErrorCode.OFFSET_METADATA_TOO_LARGE


def _list_partitions(offsets: Sequence[OffsetToCommit]) -> Iterator[tuple[bytes, int]]:
    return ((offset.topic_id, offset.partition) for offset in offsets)


def _as_committed(offset: OffsetToCommit, now_ms: int, expires_ms: int) -> tuple[str, int, CommittedOffset]:
    at_ms = now_ms if offset.commit_timestamp_ms == NO_TIMESTAMP else offset.commit_timestamp_ms
    committed = CommittedOffset(
        offset.offset, offset.leader_epoch, offset.metadata or "", at_ms, expires_ms, offset.topic_id
    )
    return offset.topic, offset.partition, committed
