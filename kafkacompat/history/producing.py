"""Producers: idempotent ones, and transactional ones that abort some transactions."""

from __future__ import annotations

from functools import partial
from typing import Any

from confluent_kafka import KafkaException, Producer

from kafkacompat.history.client import HistoryClient, ReplacementNeededError, now_ns
from kafkacompat.history.events import Acknowledged, End, Ended, HistoryPartition, Send
from kafkacompat.history.index import value_text

MOST_IN_FLIGHT = 200
LARGEST_TRANSACTION = 20
ABORTED_SHARE = 0.2
DELIVERY_TIMEOUT_MS = 120_000
TRANSACTION_TIMEOUT_MS = 15_000
CALL_S = 5.0
LONGEST_POLL_S = 0.2
LONGEST_WAIT_S = 12.0
"""Longer than a restart of the broker, and shorter than the timeout of a transaction."""


class ValueSender:
    """A producer that numbers and records its values and keeps a pace."""

    def __init__(self, client: HistoryClient, **config: Any) -> None:
        self._client = client
        self._number = 0
        self._in_flight = 0
        self._next_ns = now_ns()
        self.acknowledged = 0
        self.failed: str | None = None
        """The error of a value that was not delivered, or a fatal error of the producer."""
        settings = {"enable.idempotence": True, "linger.ms": 2, "error_cb": self._note_fatal}
        self.producer = Producer({**client.config, **settings, **config})

    def send(
        self, place: HistoryPartition, transaction: int | None = None, source: tuple[str, int, int] | None = None
    ) -> None:
        """Send the next value to a partition."""
        number = self._number
        self._number += 1
        self._client.record(Send(now_ns(), self._client.name, number, place, transaction, source))
        text = value_text(self._client.name, number)
        self.producer.produce(
            place.topic, text, partition=place.partition, on_delivery=partial(self._delivered, number)
        )
        self._in_flight += 1

    def wait_for_pace(self, throughput: float) -> None:
        """Process acknowledgements until it is time for the next value, or for the end."""
        self._next_ns += int(1e9 / throughput)
        while self._client.should_continue():
            left_ns = self._next_ns - now_ns()
            if left_ns <= 0 and self._in_flight <= MOST_IN_FLIGHT:
                break
            self.producer.poll(min(max(left_ns, 1_000_000) / 1e9, LONGEST_POLL_S))
        # The producer does not catch up on values that it did not send while the broker was down.
        self._next_ns = max(self._next_ns, now_ns() - 100_000_000)
        self.producer.poll(0)

    def _note_fatal(self, error: Any) -> None:
        if error.fatal():
            self.failed = str(error)

    def _delivered(self, number: int, error: Any, message: Any) -> None:
        self._in_flight -= 1
        if error is None:
            self.acknowledged += 1
            # The broker has the value already, and did not say where: librdkafka knows no offset of a duplicate.
            offset = -1 if message.offset() is None else message.offset()
            self._client.record(Acknowledged(now_ns(), self._client.name, number, offset))
        else:
            self.failed = str(error)


class TransactionalValueSender(ValueSender):
    """A sender whose transactions are recorded."""

    def __init__(self, client: HistoryClient) -> None:
        transactional_id = f"{client.orders.topic_prefix}-{client.orders.identity}"
        super().__init__(
            client, **{"transactional.id": transactional_id, "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS}
        )
        self.transaction = 0
        client.retry(partial(self.producer.init_transactions, CALL_S))

    def begin(self) -> None:
        """Begin the next transaction."""
        self.transaction += 1
        self.acknowledged = 0
        self.producer.begin_transaction()

    def wait_for_acknowledgement(self) -> None:
        """Wait until a value of the transaction is acknowledged, at most LONGEST_WAIT_S.

        librdkafka requests the abort of a transaction even if the coordinator does not know it yet. The coordinator rejects the
        request, and librdkafka takes that for a fatal error.
        """
        deadline_ns = now_ns() + int(LONGEST_WAIT_S * 1e9)
        while not self.acknowledged and now_ns() < deadline_ns:
            self.producer.poll(0.05)

    def end(self, commit: bool) -> bool:
        """Commit or abort; returns whether it is committed. Raises KafkaException if its end is unknown."""
        if commit:
            self._record_request(commit=True)
            try:
                self._client.retry(partial(self.producer.commit_transaction, CALL_S))
                self._record_end(committed=True)
                return True
            except KafkaException as problem:
                if not problem.args[0].txn_requires_abort():
                    raise
        self._record_request(commit=False)
        self._client.retry(partial(self.producer.abort_transaction, CALL_S))
        self._record_end(committed=False)
        return False

    def _record_request(self, commit: bool) -> None:
        self._client.record(End(now_ns(), self._client.name, self.transaction, commit))

    def _record_end(self, committed: bool) -> None:
        self._client.record(Ended(now_ns(), self._client.name, self.transaction, committed))


def run_producer(client: HistoryClient) -> None:
    """Send values to all partitions without transactions."""
    sender = ValueSender(client, **{"delivery.timeout.ms": DELIVERY_TIMEOUT_MS})
    places = client.names.record_partitions()
    while client.should_continue():
        sender.send(client.random.choice(places))
        sender.wait_for_pace(client.orders.throughput)
        if sender.failed is not None:
            raise ReplacementNeededError(sender.failed)
    sender.producer.flush(60)


def run_transactional_producer(client: HistoryClient) -> None:
    """Send transactions to all partitions."""
    sender = TransactionalValueSender(client)
    places = client.names.record_partitions()
    while client.should_continue():
        sender.begin()
        try:
            for _ in range(client.random.randint(1, LARGEST_TRANSACTION)):
                sender.send(client.random.choice(places), sender.transaction)
                sender.wait_for_pace(client.orders.throughput)
            commit = client.random.random() >= ABORTED_SHARE
            if not commit:
                sender.wait_for_acknowledgement()
        except KafkaException as problem:
            # The transaction has failed already, and takes no more values.
            if not problem.args[0].txn_requires_abort():
                raise
            commit = False
        sender.end(commit)
