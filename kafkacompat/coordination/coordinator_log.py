"""The interface of a coordinator to its topic, `__consumer_offsets` or `__transaction_state`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

    from kafkacompat.storage.producers.verification import Guard
    from kafkacompat.wire.primitives import Buffer

Record: TypeAlias = "tuple[bytes, bytes | None]"
"""(key, value) as they are in the log; a value of None deletes the key."""


class LogProducer(NamedTuple):
    """The producer in whose transaction a coordinator writes records.

    ``guard`` proves that the transaction coordinator verified the transaction. The log checks it only if the transaction begins
    in this partition.
    """

    producer_id: int
    producer_epoch: int
    guard: Guard


NO_PRODUCER = -1
"""Producer id and producer epoch of a batch that belongs to no transaction."""


class CoordinatorLog(Protocol):
    """The partitions of one internal topic. Every method is called on the reactor thread."""

    @property
    def topic(self) -> str:
        """The topic's name."""
        ...

    @property
    def partition_count(self) -> int:
        """The number of partitions of the topic; before it exists, the number it will be created with."""
        ...

    def append(self, partition: int, batch: bytes, guard: Guard | None = None) -> Deferred[None]:
        """Append one record batch as a producer with acks=all does. A batch of a transaction carries a *guard*.

        Fires once the in-sync replicas have the batch; fails with KafkaError. The log has the batches in the order of the calls, but their
        Deferreds may fire in any order.
        """
        ...

    def read(self, partition: int) -> Iterator[Buffer]:
        """Yield every complete batch from the log's start to its end at the first step.

        Reads a bounded number of bytes at a time.
        """
        ...

    def wait_until_committed(self, partition: int) -> Deferred[None]:
        """Fire when all batches that the partition has now are below its high watermark.

        Fails with KafkaError if this broker does not lead the partition, or loses it meanwhile.
        """
        ...
