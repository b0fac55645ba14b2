"""What a coordinator asks of its topic: `__consumer_offsets`, or `__transaction_state`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

    from kafkacompat.storage.producers.verification import Guard
    from kafkacompat.wire.primitives import Buffer

Record: TypeAlias = "tuple[bytes, bytes | None]"
"""(key, value) as they stand in the log."""


class LogProducer(NamedTuple):
    """Whose transaction records are written in.

    ``guard`` shows that the transaction coordinator vouches for it; it counts only where it begins in this partition.
    """

    producer_id: int
    producer_epoch: int
    guard: Guard


NO_PRODUCER = -1
"""Stands in a batch that belongs to no transaction, as producer id and as epoch."""


class CoordinatorLog(Protocol):
    """The partitions of one internal topic; every method is called on the reactor thread."""

    @property
    def topic(self) -> str:
        """The topic's name."""
        ...

    @property
    def partition_count(self) -> int:
        """How many partitions the topic has; before it exists, how many it will get."""
        ...

    def append(self, partition: int, batch: bytes, guard: Guard | None = None) -> Deferred[None]:
        """Append one record batch as a producer with acks=all would; one that is part of a transaction comes with a *guard*.

        Fires once the batch is durable; fails with KafkaError. Batches are in the log in the order of the
        calls, but their Deferreds may fire in any order.
        """
        ...

    def read(self, partition: int) -> Iterator[Buffer]:
        """Yield every whole batch from the log's start to its end, reading a bounded piece at a time."""
        ...
