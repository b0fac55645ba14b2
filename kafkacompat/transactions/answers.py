"""What the transaction coordinator answers with."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from twisted.internet.defer import Deferred

from kafkacompat.transactions.transaction import NO_EPOCH, NO_PRODUCER_ID, Producer, TopicPartition
from kafkacompat.wire.errors import ErrorCode

NOBODY = Producer(NO_PRODUCER_ID, NO_EPOCH)


class ProducerAnswer(NamedTuple):
    """A code, and who may write from now on; NOBODY with an error, and where the client goes on as before."""

    error_code: ErrorCode
    producer: Producer = NOBODY


PartitionCodes: TypeAlias = "dict[TopicPartition, ErrorCode]"
CodeOrLater: TypeAlias = "ErrorCode | Deferred[ErrorCode]"
PartitionCodesOrLater: TypeAlias = "PartitionCodes | Deferred[PartitionCodes]"
