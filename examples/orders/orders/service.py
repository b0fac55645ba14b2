"""The service: reads orders, adds their prices, and writes them to another topic."""

from __future__ import annotations

import logging
import threading
from types import TracebackType

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from orders.pricing import OrderError, price_order

ORDERS, PRICED, REJECTED = "orders", "priced-orders", "rejected-orders"
GROUP = "order-pricing"
BATCH = 500

log = logging.getLogger(__name__)


class PricingService:
    """Prices each order exactly once, also when requests fail or the service is killed.

    The priced orders of a batch and the offsets of their orders are committed in one transaction: both count, or neither does.
    Orders that cannot be priced go to a topic of their own.
    """

    def __init__(self, bootstrap_servers: str) -> None:
        servers = {"bootstrap.servers": bootstrap_servers}
        self._producer = Producer({**servers, "transactional.id": GROUP})
        self._producer.init_transactions()
        self._consumer = Consumer(
            {**servers, "group.id": GROUP, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        )
        self._consumer.subscribe([ORDERS])

    def run(self, stop: threading.Event) -> None:
        """Price orders until *stop* is set."""
        while not stop.is_set():
            self.price_next()

    def price_next(self, wait_s: float = 0.1) -> None:
        """Wait for orders, and price those that have come."""
        orders = [message for message in self._consumer.consume(BATCH, wait_s) if is_order(message)]
        if not orders:
            return
        self._producer.begin_transaction()
        try:
            for order in orders:
                self._write(order)
            self._producer.send_offsets_to_transaction(
                self._consumer.position(self._consumer.assignment()), self._consumer.consumer_group_metadata()
            )
            self._producer.commit_transaction()
        except KafkaException as problem:
            if not problem.args[0].txn_requires_abort():
                raise
            log.warning("Trying %d orders again: %s", len(orders), problem)
            self._producer.abort_transaction()
            self._rewind(orders)

    def _write(self, order: Message) -> None:
        try:
            self._producer.produce(PRICED, key=order.key(), value=price_order(order.value() or b""))
        except OrderError as problem:
            log.warning(
                "Rejected the order at offset %d of partition %d: %s", order.offset(), order.partition(), problem
            )
            self._producer.produce(REJECTED, key=order.key(), value=order.value(), headers={"reason": str(problem)})

    def _rewind(self, orders: list[Message]) -> None:
        """Let the next batch begin with the first of *orders* in each partition."""
        for order in reversed(orders):
            self._consumer.seek(TopicPartition(order.topic(), order.partition(), order.offset()))

    def close(self) -> None:
        """Leave the group, and close the connections."""
        self._consumer.close()
        self._producer.close()

    def __enter__(self) -> PricingService:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def is_order(message: Message) -> bool:
    """Return whether a message is a record; raises KafkaException for an error that does not pass by itself."""
    error = message.error()
    if error is None:
        return True
    if error.fatal() or not (error.retriable() or error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART):
        raise KafkaException(error)
    return False
