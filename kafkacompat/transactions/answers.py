"""The results of the transaction coordinator's methods."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from twisted.internet.defer import Deferred

from kafkacompat.transactions.transaction import NO_EPOCH, NO_PRODUCER_ID, ProducerIdentity, TopicPartition
from kafkacompat.wire.errors import ErrorCode

NOBODY = ProducerIdentity(NO_PRODUCER_ID, NO_EPOCH)


class ProducerAnswer(NamedTuple):
    """An error code, and the producer id and epoch that the client has to use from now on.

    ``producer`` is NOBODY with an error, and if the client keeps its producer id and epoch.
    """

    error_code: ErrorCode
    producer: ProducerIdentity = NOBODY


PartitionCodes: TypeAlias = "dict[TopicPartition, ErrorCode]"
CodeAnswer: TypeAlias = "ErrorCode | Deferred[ErrorCode]"
PartitionCodesAnswer: TypeAlias = "PartitionCodes | Deferred[PartitionCodes]"
