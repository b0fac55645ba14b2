"""Produces records by librdkafka, and counts those that the brokers acknowledge and refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kafkacompat.cli.remote.records.failures import ReasonCounts, explain_error
from kafkacompat.cli.remote.records.input_records import NewRecord

POLL_EVERY = 1000
"""Records between two polls for acknowledgements."""
FULL_QUEUE_WAIT_S = 0.1
FLUSH_SLICE_S = 0.2
_DEFAULTS = list(NewRecord(None)[2:])


class Refusals(ReasonCounts):
    """Counts refused records, by reason.

    librdkafka reports each record that is refused, by ``on_delivery``, and no other (``delivery.report.only.error``): a million
    reports of success would take longer than the records.
    """

    def count_delivery(self, error: Any, _: Any) -> None:
        """Receive the outcome of a record: librdkafka's on_delivery."""
        if error is not None:
            self.count(explain_error(error))

    @property
    def sentences(self) -> list[str]:
        """A sentence for each reason."""
        return [
            f"{count:,} record{'s were' if count != 1 else ' was'} refused: {reason}"
            for reason, count in self.counts.most_common()
        ]


class Production:
    """One run: hands records over to a producer, and counts them.

    The producer refers to *refusals*, and nothing in it refers to this object: a cycle would leave its connections open.
    """

    def __init__(self, producer: Any, topic: str, refusals: Refusals) -> None:
        self._producer = producer
        self._topic = topic
        self.refusals = refusals
        self.given = 0

    @property
    def refused(self) -> int:
        """How many records are refused."""
        return self.refusals.counts.total()

    @property
    def unknown(self) -> int:
        """How many records are neither acknowledged nor refused."""
        return len(self._producer)

    @property
    def acknowledged(self) -> int:
        """How many records the brokers have acknowledged."""
        return self.given - self.refused - self.unknown

    def produce(self, records: Iterable[NewRecord]) -> None:
        """Hand records over as the queue has room; one that librdkafka does not take is counted as refused."""
        send, topic = self._producer.produce, self._topic
        for record in records:
            value, key, *others = record
            try:
                if others == _DEFAULTS:
                    send(topic, value, key)
                else:
                    self._send_all(record)
            except BufferError:
                self._send_later(record)
            except Exception as problem:
                self._count_failure(problem)
            self.given += 1
            if not self.given % POLL_EVERY:
                self._producer.poll(0)

    def _send_all(self, record: NewRecord) -> None:
        value, key, headers, partition, timestamp = record
        self._producer.produce(self._topic, value, key, partition=partition, timestamp=timestamp, headers=headers)

    def _send_later(self, record: NewRecord) -> None:
        """Hand a record over once the full queue has room."""
        while True:
            self._producer.poll(FULL_QUEUE_WAIT_S)
            try:
                return self._send_all(record)
            except BufferError:
                continue
            except Exception as problem:
                return self._count_failure(problem)

    def _count_failure(self, problem: Exception) -> None:
        """Count a record that librdkafka does not take; any other exception goes on."""
        error = problem.args[0] if problem.args else None
        if not hasattr(error, "name"):
            raise problem
        self.refusals.count(explain_error(error))

    def flush(self, limit_s: float | None, now_s: Callable[[], float]) -> None:
        """Wait until each record is acknowledged or refused, for *limit_s* at most; None waits as long as it takes."""
        end_s = None if limit_s is None else now_s() + limit_s
        while self._producer.flush(FLUSH_SLICE_S) and (end_s is None or now_s() < end_s):
            pass
