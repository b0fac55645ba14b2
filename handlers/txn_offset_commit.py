"""TxnOffsetCommit (key 28), v0-5: store a group's offsets if a transaction commits.

v2     leader epochs (KIP-320)
v3     flexible; names the committing member of the group (KIP-447)
v4     the client knows TRANSACTION_ABORTABLE
v5     needs no AddOffsetsToTxn before it (KIP-890)

Each partition that does not exist gets its own error; an error of the transaction or the group applies to all others.
"""

from __future__ import annotations

from collections.abc import Sequence

from twisted.internet.defer import Deferred

from kafkacompat.coordination.coordinator_log import LogProducer
from kafkacompat.coordination.writer import COORDINATOR_ERRORS
from kafkacompat.groups.any_group import SenderIdentity
from kafkacompat.groups.commits import OffsetToCommit
from kafkacompat.groups.offsets_topic import OFFSETS_TOPIC
from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.offset_commit import parse_offset
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

GUARD_OF_OPEN_TRANSACTION = Guard(-1, -1, False)
"""The guard of a commit whose transaction is already open in that partition; the transaction's end invalidates it."""


def handle_txn_offset_commit(
    request: TxnOffsetCommitRequest, context: RequestContext, services: Services
) -> TxnOffsetCommitResponse | Pending[TxnOffsetCommitResponse]:
    """Commit the offsets; answer when they are in the log."""
    commit = _TransactionalCommit(services.metadata.image)
    response = TxnOffsetCommitResponse(
        topics=[commit.answer_topic(topic) for topic in request.topics if topic.partitions]
    )
    if not commit.offsets:
        return response
    transaction = _CommittingTransaction(request, context.api_version, services)
    written = Deferred.fromCoroutine(transaction.commit(commit.offsets))
    # Until the coordinator has verified the transaction, the next request would overtake this one.
    return Pending(written.addCallback(commit.fill_codes, response), in_order=transaction.is_being_verified)


class _TransactionalCommit:
    """One request's partitions; ``offsets`` holds the offsets of existing ones, ``_answers`` their results."""

    def __init__(self, image: MetadataImage) -> None:
        self.offsets: list[OffsetToCommit] = []
        self._answers: list[TxnOffsetCommitResponsePartition] = []
        self._image = image

    def answer_topic(self, topic: TxnOffsetCommitRequestTopic) -> TxnOffsetCommitResponseTopic:
        image = self._image.topics.get(topic.name)
        partitions = [self._answer_partition(image, partition) for partition in topic.partitions]
        return TxnOffsetCommitResponseTopic(name=topic.name, partitions=partitions)

    def _answer_partition(
        self, topic: TopicImage | None, partition: TxnOffsetCommitRequestPartition
    ) -> TxnOffsetCommitResponsePartition:
        answer = TxnOffsetCommitResponsePartition(partition_index=partition.partition_index)
        if topic is None or not 0 <= partition.partition_index < len(topic.partitions):
            answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            self._answers.append(answer)
            self.offsets.append(parse_offset(topic, partition))
        return answer

    def fill_codes(self, codes: Sequence[ErrorCode], response: TxnOffsetCommitResponse) -> TxnOffsetCommitResponse:
        for answer, code in zip(self._answers, codes, strict=True):
            answer.error_code = code
        return response


class _CommittingTransaction:
    """The transaction of a commit; ``is_being_verified`` until its coordinator has answered."""

    def __init__(self, request: TxnOffsetCommitRequest, version: int, services: Services) -> None:
        self.is_being_verified = False
        self._request = request
        self._version = version
        self._services = services
        self._partition = services.coordinators.groups.partition_for(request.group_id)

    async def commit(self, offsets: Sequence[OffsetToCommit]) -> list[ErrorCode]:
        request = self._request
        if not request.group_id:
            return [ErrorCode.INVALID_GROUP_ID] * len(offsets)
        guard = await self._find_guard()
        if isinstance(guard, ErrorCode):
            return [self._adapt_to_version(guard)] * len(offsets)
        producer = LogProducer(request.producer_id, request.producer_epoch, guard)
        identity = SenderIdentity(request.member_id, request.group_instance_id, request.generation_id)
        codes = self._services.coordinators.groups.commit_in_transaction(request.group_id, identity, producer, offsets)
        return [self._adapt_to_version(code) for code in (await codes if isinstance(codes, Deferred) else codes)]

    async def _find_guard(self) -> Guard | ErrorCode:
        """Return the guard that the commit needs, or the error that rejects it."""
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
            return GUARD_OF_OPEN_TRANSACTION
        if not is_adding and not self._services.effective.config.bool(VERIFICATION):
            return NOT_VERIFIED
        return await self._verify_or_add(is_adding) or guard

    async def _verify_or_add(self, is_adding: bool) -> ErrorCode:
        """Let the transaction's coordinator verify the partition, or add it to the transaction."""
        request, where = self._request, (OFFSETS_TOPIC, self._partition)
        codes = self._services.coordinators.verifier.verify(
            request.transactional_id, request.producer_id, request.producer_epoch, [where], add=is_adding
        )
        if isinstance(codes, Deferred):
            self.is_being_verified = True
            codes = await codes
            self.is_being_verified = False
        return codes[where]

    def _adapt_to_version(self, code: ErrorCode) -> ErrorCode:
        """Return the error code that this version's clients know."""
        code = COORDINATOR_ERRORS.get(code, code)
        if code is ErrorCode.NETWORK_EXCEPTION:
            # The transaction's coordinator did not answer; clients retry after this code without looking for the group's.
            code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        if code is ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if code is ErrorCode.TRANSACTION_ABORTABLE and self._version < ABORTABLE_VERSION:
            return ErrorCode.INVALID_TXN_STATE
        if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and self._version < LOAD_IN_PROGRESS_VERSION:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE  # which producers before 2.0 do not crash upon
        return code
