"""The transactions of one incarnation of a producer, by the rules of the Java client's TransactionManager (KIP-98, KIP-360, KIP-890)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kafkacompat.history.events import HistoryPartition
from kafkacompat.wire.apis.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkacompat.wire.apis.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from kafkacompat.wire.apis.api_versions import ApiVersionsRequest
from kafkacompat.wire.apis.end_txn import EndTxnRequest
from kafkacompat.wire.apis.init_producer_id import InitProducerIdRequest
from kafkacompat.wire.apis.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.simulation.clients.batches import NO_IDENTITY, Batch, BatchValue, ProducerIdentity
from tests.simulation.clients.coordinators import GROUP, TRANSACTION, Coordinator
from tests.simulation.clients.group_offsets import GroupMember
from tests.simulation.clients.process import ClientProcess
from tests.simulation.clients.sender import BatchSender
from tests.simulation.clients.sequences import Sequences
from tests.simulation.clients.settings import TransactionalSettings

IMPLICIT_VERSION = 2
FEATURE = "transaction.version"
CLIENT_CAPS = {24: 3}
"""Clients send AddPartitionsToTxn up to version 3 only."""
OLD_CAPS = {0: 11, 26: 4, 28: 4, **CLIENT_CAPS}
"""Produce, EndTxn and TxnOffsetCommit of clients before KIP-890."""

FATAL_FOR_BATCHES = frozenset(
    {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}
)
ABORTABLE = frozenset({ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.UNKNOWN_PRODUCER_ID})
ABORTABLE_FOR_OFFSETS = ABORTABLE | {
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.REBALANCE_IN_PROGRESS,
}


class FatalTransactionError(Exception):
    """This incarnation of the producer cannot continue."""


class AbortableTransactionError(Exception):
    """The transaction has to be aborted."""


class TransactionSession:
    """One incarnation of a transactional producer.

    ``on_delivered(batch, offset)`` is called for each batch that is in the log. A session has one transaction at a time: `send`, `flush`,
    `end`; or `give_up` and `end` after an error. All of them raise FatalTransactionError, and the first two AbortableTransactionError.
    """

    def __init__(self, process: ClientProcess, settings: TransactionalSettings) -> None:
        self._process = process
        self._settings = settings
        self._sequences = Sequences(is_transactional=True)
        self.sender = BatchSender(process, settings, self._sequences, settings.transactional_id)
        self.sender.on_failed = self._note_failed
        self.sender.on_sequence_lost = self._note_sequence_lost
        self.sender.may_send_to = self._may_send_to
        self._coordinator = Coordinator(process, TRANSACTION, settings.transactional_id)
        self._version = 0
        self._is_started = False
        self._added: dict[HistoryPartition, None] = {}
        self._to_add: dict[HistoryPartition, None] = {}
        self._is_adding = False
        self._needs_new_epoch = False
        self._error: Exception | None = None

    @property
    def is_failed(self) -> bool:
        """Whether the transaction has to be aborted, or the session given up."""
        return self._error is not None

    def close(self) -> None:
        """Forget everything; nobody is asked to abort."""
        self.sender.close()

    # A session

    async def begin(self, previous: ProducerIdentity = NO_IDENTITY) -> None:
        """Get a producer id and epoch, which fences the earlier incarnations and aborts their transaction."""
        await self._choose_version()
        request = InitProducerIdRequest(
            transactional_id=self._settings.transactional_id,
            transaction_timeout_ms=int(self._settings.transaction_timeout_s * 1000),
            producer_id=previous.producer_id,
            producer_epoch=previous.epoch,
        )
        response = await self._ask(request)
        self._sequences.begin(ProducerIdentity(response.producer_id, response.producer_epoch))

    async def _choose_version(self) -> None:
        if self._settings.transaction_version < IMPLICIT_VERSION:
            return
        response = await self._process.ask_any(
            ApiVersionsRequest(client_software_name="simulation", client_software_version="1")
        )
        levels = {feature.name: feature.max_version_level for feature in response.finalized_features}
        self._version = min(levels.get(FEATURE, 0), self._settings.transaction_version)

    def cap(self, api_key: int) -> int | None:
        """Return the highest version of a request that belongs to the session's transaction version."""
        return (CLIENT_CAPS if self._version >= IMPLICIT_VERSION else OLD_CAPS).get(api_key)

    # Values

    def send(self, place: HistoryPartition, value: BatchValue) -> None:
        """Send a value as part of the transaction."""
        if self._version >= IMPLICIT_VERSION:
            self._is_started = True
            self._added[place] = None
        elif place not in self._added and place not in self._to_add:
            self._to_add[place] = None
            if not self._is_adding:
                self._is_adding = True
                self._process.spawn(self._add_partitions())
        self.sender.append(place, value)

    def _may_send_to(self, place: HistoryPartition) -> bool:
        return place in self._added

    async def _add_partitions(self) -> None:
        """Add the partitions that wait to the transaction, as clients before KIP-890 do."""
        while self._to_add and self._error is None:
            places = list(self._to_add)
            topics: dict[str, list[int]] = {}
            for place in places:
                topics.setdefault(place.topic, []).append(place.partition)
            producer_id, epoch = self._sequences.identity
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self._settings.transactional_id,
                v3_and_below_producer_id=producer_id,
                v3_and_below_producer_epoch=epoch,
                v3_and_below_topics=[
                    AddPartitionsToTxnTopic(name=name, partitions=partitions) for name, partitions in topics.items()
                ],
            )
            try:
                await self._ask(request, _find_partition_error)
            except (FatalTransactionError, AbortableTransactionError) as problem:
                self._fail(problem)
            else:
                self._is_started = True
                for place in places:
                    del self._to_add[place]
                    self._added[place] = None
                self.sender.wake()
        self._is_adding = False

    async def flush(self) -> None:
        """Wait until all values are in the log."""
        while not self.sender.is_idle or self._to_add:
            self._raise()
            await self._process.sleep(self._settings.retry_backoff_s / 4)
        self._raise()

    # Offsets

    async def send_offsets(self, member: GroupMember, offsets: dict[HistoryPartition, int]) -> None:
        """Commit offsets of a group as part of the transaction."""
        producer_id, epoch = self._sequences.identity
        if self._version < IMPLICIT_VERSION:
            await self._ask(
                AddOffsetsToTxnRequest(
                    transactional_id=self._settings.transactional_id,
                    producer_id=producer_id,
                    producer_epoch=epoch,
                    group_id=member.group,
                )
            )
        self._is_started = True
        topics: dict[str, TxnOffsetCommitRequestTopic] = {}
        for place, offset in offsets.items():
            topic = topics.setdefault(place.topic, TxnOffsetCommitRequestTopic(name=place.topic, partitions=[]))
            topic.partitions.append(
                TxnOffsetCommitRequestPartition(
                    partition_index=place.partition, committed_offset=offset, committed_metadata=""
                )
            )
        request = TxnOffsetCommitRequest(
            transactional_id=self._settings.transactional_id,
            group_id=member.group,
            producer_id=producer_id,
            producer_epoch=epoch,
            generation_id=member.generation,
            member_id=member.member_id,
            topics=list(topics.values()),
        )
        coordinator = Coordinator(self._process, GROUP, member.group)
        await self._ask(request, _find_commit_error, coordinator, ABORTABLE_FOR_OFFSETS)

    # The end

    async def give_up(self) -> None:
        """Prepare an abort: wait for the batches that were sent already."""
        self.sender.drop_unsent(ErrorCode.TRANSACTION_ABORTABLE)
        while not self.sender.is_idle or self._is_adding:
            self._raise(is_aborting=True)
            await self._process.sleep(self._settings.retry_backoff_s / 4)
        self._raise(is_aborting=True)

    async def end(self, *, commit: bool) -> None:
        """Commit or abort. A commit without an answer that proves its failure is fatal, as its outcome is unknown."""
        if self._is_started:
            producer_id, epoch = self._sequences.identity
            request = EndTxnRequest(
                transactional_id=self._settings.transactional_id,
                producer_id=producer_id,
                producer_epoch=epoch,
                committed=commit,
            )
            response = await self._ask(request)
            if self._version >= IMPLICIT_VERSION:
                self._sequences.begin(ProducerIdentity(response.producer_id, response.producer_epoch))
        if self._needs_new_epoch and self._version < IMPLICIT_VERSION:
            await self.begin(self._sequences.identity)
        self._is_started = self._needs_new_epoch = False
        self._added.clear()
        self._to_add.clear()
        self._error = None

    # Errors

    async def _ask(
        self,
        request: Any,
        find_error: Callable[[Any], int] = lambda response: response.error_code,
        coordinator: Coordinator | None = None,
        abortable: frozenset[ErrorCode] = ABORTABLE,
    ) -> Any:
        try:
            return await (coordinator or self._coordinator).ask(request, find_error)
        except KafkaError as problem:
            if problem.code in abortable and not isinstance(request, EndTxnRequest | InitProducerIdRequest):
                raise AbortableTransactionError(str(problem)) from problem
            if (
                problem.code is ErrorCode.TRANSACTION_ABORTABLE
                and isinstance(request, EndTxnRequest)
                and request.committed
            ):
                raise AbortableTransactionError(str(problem)) from problem
            raise FatalTransactionError(str(problem)) from problem

    def _note_failed(self, batch: Batch, code: int) -> None:
        text = f"a batch for {batch.place} failed: {ErrorCode(code).name}"
        fatal = code in FATAL_FOR_BATCHES
        self._needs_new_epoch = True
        self._fail(FatalTransactionError(text) if fatal else AbortableTransactionError(text))

    def _note_sequence_lost(self) -> None:
        self._needs_new_epoch = True
        self._fail(AbortableTransactionError("the fate of a batch is unknown"))

    def _fail(self, problem: Exception) -> None:
        if not isinstance(self._error, FatalTransactionError):
            self._error = problem

    def _raise(self, *, is_aborting: bool = False) -> None:
        if self._error is not None and (isinstance(self._error, FatalTransactionError) or not is_aborting):
            raise self._error


def _find_partition_error(response: AddPartitionsToTxnResponse) -> int:
    codes = [
        partition.partition_error_code
        for topic in response.results_by_topic_v3_and_below
        for partition in topic.results_by_partition
    ]
    return _choose_code(codes)


def _find_commit_error(response: TxnOffsetCommitResponse) -> int:
    return _choose_code(partition.error_code for topic in response.topics for partition in topic.partitions)


def _choose_code(codes: Iterable[int]) -> int:
    """Return the code that says why a request failed: OPERATION_NOT_ATTEMPTED only says that another partition did."""
    failed: Iterator[int] = (code for code in codes if code and code != ErrorCode.OPERATION_NOT_ATTEMPTED)
    return next(failed, 0)
