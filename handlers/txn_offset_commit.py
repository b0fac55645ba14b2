"""TxnOffsetCommit (key 28), v0-5: store how far a group has read, if a transaction is committed.

v2     leader epochs (KIP-320)
v3     flexible; the member of the group that commits (KIP-447), which before was not known
v4     the client knows TRANSACTION_ABORTABLE
v5     no AddOffsetsToTxn goes before it (KIP-890)

Partitions that do not exist are refused one by one; what is wrong with the transaction or the group is said of all the others.
"""

from __future__ import annotations

from collections.abc import Sequence

from twisted.internet.defer import Deferred

from kafkacompat.coordination.coordinator_log import LogProducer
from kafkacompat.coordination.writer import COORDINATOR_ERRORS
from kafkacompat.groups.any_group import Identity
from kafkacompat.groups.commits import OffsetToCommit
from kafkacompat.groups.offsets_topic import OFFSETS_TOPIC
from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.offset_commit import offset_to_commit
from kafkacompat.handlers.per_partition import error_code_of
from kafkacompat.handlers.produce_verification import VERIFICATION
from kafkacompat.metadata.image import MetadataImage, TopicImage
from kafkacompat.storage.producers.verification import NOT_VERIFIED, Guard
from kafkacompat.wire.apis.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kafkacompat.wire.errors import ErrorCode

LOAD_IN_PROGRESS_VERSION = 2
ABORTABLE_VERSION = 4
ADDING_VERSION = 5

IS_OPEN = Guard(-1, -1, False)
"""Comes with a commit whose transaction is open where it goes: nobody vouches for it once that has ended."""


def handle_txn_offset_commit(
    request: TxnOffsetCommitRequest, context: RequestContext, services: Services
) -> TxnOffsetCommitResponse | Pending[TxnOffsetCommitResponse]:
    """Commit; the answer comes when the offsets are in the log."""
    commit = _Commit(services.metadata.image)
    response = TxnOffsetCommitResponse(topics=[commit.topic(topic) for topic in request.topics if topic.partitions])
    if not commit.offsets:
        return response
    transaction = _Transaction(request, context.api_version, services)
    written = Deferred.fromCoroutine(transaction.commit(commit.offsets))
    # Until the coordinator has vouched for the transaction, the next request's effects would overtake these.
    return Pending(written.addCallback(commit.settled, response), in_order=transaction.is_asked_for)


class _Commit:
    """One request's partitions; ``offsets`` are those of partitions that exist, ``_answers`` their places."""

    def __init__(self, image: MetadataImage) -> None:
        self.offsets: list[OffsetToCommit] = []
        self._answers: list[TxnOffsetCommitResponsePartition] = []
        self._image = image

    def topic(self, topic: TxnOffsetCommitRequestTopic) -> TxnOffsetCommitResponseTopic:
        image = self._image.topics.get(topic.name)
        partitions = [self._partition(image, partition) for partition in topic.partitions]
        return TxnOffsetCommitResponseTopic(name=topic.name, partitions=partitions)

    def _partition(
        self, topic: TopicImage | None, partition: TxnOffsetCommitRequestPartition
    ) -> TxnOffsetCommitResponsePartition:
        answer = TxnOffsetCommitResponsePartition(partition_index=partition.partition_index)
        if topic is None or not 0 <= partition.partition_index < len(topic.partitions):
            answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            self._answers.append(answer)
            self.offsets.append(offset_to_commit(topic, partition))
        return answer

    def settled(self, codes: Sequence[ErrorCode], response: TxnOffsetCommitResponse) -> TxnOffsetCommitResponse:
        for answer, code in zip(self._answers, codes, strict=True):
            answer.error_code = code
        return response


class _Transaction:
    """Whose commit it is; ``is_asked_for`` while the transaction's coordinator has not answered."""

    def __init__(self, request: TxnOffsetCommitRequest, version: int, services: Services) -> None:
        self.is_asked_for = False
        self._request = request
        self._version = version
        self._services = services
        self._partition = services.coordinators.groups.partition_for(request.group_id)

    async def commit(self, offsets: Sequence[OffsetToCommit]) -> list[ErrorCode]:
        request = self._request
        if not request.group_id:
            return [ErrorCode.INVALID_GROUP_ID] * len(offsets)
        guard = await self._guard()
        if isinstance(guard, ErrorCode):
            return [self._in_words(guard)] * len(offsets)
        producer = LogProducer(request.producer_id, request.producer_epoch, guard)
        identity = Identity(request.member_id, request.group_instance_id, request.generation_id)
        codes = self._services.coordinators.groups.commit_in_transaction(request.group_id, identity, producer, offsets)
        return [self._in_words(code) for code in (await codes if isinstance(codes, Deferred) else codes)]

    async def _guard(self) -> Guard | ErrorCode:
        """What the commit has to come with, or why it may not come."""
        request = self._request
        if request.producer_id < 0:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        is_adding = self._version >= ADDING_VERSION
        try:
            partition = self._services.replica_manager.find(OFFSETS_TOPIC, self._partition)
            guard = partition.guard(request.producer_id, request.producer_epoch, -1, begins_at_zero=is_adding)
        except Exception as problem:
            return error_code_of(problem)
        if guard is None:
            return IS_OPEN
        if not is_adding and not self._services.controller.config.bool(VERIFICATION):
            return NOT_VERIFIED
        return await self._ask(is_adding) or guard

    async def _ask(self, is_adding: bool) -> ErrorCode:
        """Have the transaction's coordinator vouch for it, or make the partition part of it."""
        request, where = self._request, (OFFSETS_TOPIC, self._partition)
        codes = self._services.coordinators.transactions.verify(
            request.transactional_id, request.producer_id, request.producer_epoch, [where], add=is_adding
        )
        if isinstance(codes, Deferred):
            self.is_asked_for = True
            codes = await codes
            self.is_asked_for = False
        return codes[where]

    def _in_words(self, code: ErrorCode) -> ErrorCode:
        """What a code of whichever coordinator is for a client of this version."""
        code = COORDINATOR_ERRORS.get(code, code)
        if code is ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if code is ErrorCode.TRANSACTION_ABORTABLE and self._version < ABORTABLE_VERSION:
            return ErrorCode.INVALID_TXN_STATE
        if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and self._version < LOAD_IN_PROGRESS_VERSION:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE  # which producers before 2.0 do not crash upon
        return code
