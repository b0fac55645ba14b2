"""Sending batches as the Java client's Sender does: several requests in flight, repeated in order, until the delivery timeout."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from twisted.python.failure import Failure

from kafkacompat.client.errors import RequestFailedError
from kafkacompat.client.settings import BrokerAddress
from kafkacompat.history.events import HistoryPartition
from kafkacompat.timers import DelayedCall
from kafkacompat.wire.apis.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kafkacompat.wire.errors import ErrorCode
from tests.simulation.clients.batches import Batch, BatchValue
from tests.simulation.clients.errors import INVALID_METADATA
from tests.simulation.clients.process import ClientProcess
from tests.simulation.clients.sequences import Sequences
from tests.simulation.clients.settings import ProducerSettings

PRODUCE = "produce"
FACTOR, JITTER = 2, 0.2


class BatchSender:
    """Sends the batches of a producer; without *sequences* each is sent once only.

    ``on_delivered(batch, offset)`` and ``on_failed(batch, code)`` are called once for each batch; the code is REQUEST_TIMED_OUT if the
    delivery timed out, so that nobody knows whether the batch is in the log. ``on_identity_needed()`` is called while there is no
    producer id. ``may_send_to(partition)`` holds a partition's batches back.
    """

    def __init__(
        self,
        process: ClientProcess,
        settings: ProducerSettings,
        sequences: Sequences | None,
        transactional_id: str | None = None,
    ) -> None:
        self._process = process
        self._clock = process.clock
        self._cluster = process.cluster
        self._settings = settings
        self._sequences = sequences
        self._transactional_id = transactional_id
        self._queues: dict[HistoryPartition, deque[Batch]] = {}
        self._on_the_wire: dict[Batch, None] = {}
        self._requests: dict[int, int] = {}
        self._not_before: dict[int, float] = {}
        self._batches = 0
        self._is_closed = False
        self._timer: DelayedCall | None = None
        self.on_delivered: Callable[[Batch, int], None] = lambda batch, offset: None
        self.on_failed: Callable[[Batch, int], None] = lambda batch, code: None
        self.on_identity_needed: Callable[[], None] = lambda: None
        self.on_sequence_lost: Callable[[], None] = lambda: None
        self.may_send_to: Callable[[HistoryPartition], bool] = lambda place: True
        process.cluster.listeners.append(self.wake)

    # What the producer does

    @property
    def is_idle(self) -> bool:
        """Whether all batches are done."""
        return not self._on_the_wire and not any(self._queues.values())

    @property
    def queued_batches(self) -> int:
        """The number of batches that wait."""
        return sum(map(len, self._queues.values()))

    def append(self, place: HistoryPartition, value: BatchValue) -> None:
        """Add a value to the last batch of its partition that was not sent yet, or to a new one."""
        queue = self._queues.setdefault(place, deque())
        if not queue or queue[-1].attempts or len(queue[-1].values) >= self._settings.max_batch_records:
            self._batches += 1
            queue.append(Batch(place, self._batches, self._clock.seconds()))
        queue[-1].values.append(value)
        self.wake()

    def drop_unsent(self, code: int) -> None:
        """Give up the batches that were never sent."""
        for queue in self._queues.values():
            for batch in [batch for batch in queue if not batch.attempts]:
                queue.remove(batch)
                self._end(batch, code)

    def close(self) -> None:
        """Send nothing any more, and forget all batches."""
        self._cluster.listeners.remove(self.wake)
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._is_closed = True
        self._queues.clear()
        for batch in self._on_the_wire:
            batch.is_done = True
        self._on_the_wire.clear()

    def wake(self) -> None:
        """Send what may be sent, in a later turn."""
        self._wake_at(self._clock.seconds())

    # The loop

    def _wake_at(self, time_s: float) -> None:
        if self._is_closed:
            return
        if self._timer is not None and self._timer.active():
            if self._timer.getTime() <= time_s:
                return
            self._timer.cancel()
        self._timer = self._clock.callLater(max(0.0, time_s - self._clock.seconds()), self._run)

    def _run(self) -> None:
        self._expire()
        if self._prepare_sequences():
            while requests := self._collect():
                for node_id, batches in requests.items():
                    self._send(self._cluster.broker(node_id), batches)
        next_at = min(self._list_next_times(), default=None)
        if next_at is not None:
            self._wake_at(next_at)

    def _expire(self) -> None:
        since = self._clock.seconds() - self._settings.delivery_timeout_s
        waiting = [batch for queue in self._queues.values() for batch in queue]
        for batch in [batch for batch in (*self._on_the_wire, *waiting) if batch.created_at <= since]:
            if batch in self._on_the_wire:
                del self._on_the_wire[batch]
            else:
                self._queues[batch.place].remove(batch)
            if self._sequences is not None and batch.has_sequence:
                self._sequences.fail(batch, ErrorCode.REQUEST_TIMED_OUT, is_rejected=False)
            self._end(batch, ErrorCode.REQUEST_TIMED_OUT)

    def _prepare_sequences(self) -> bool:
        """Return whether the producer has an identity to send under."""
        sequences = self._sequences
        if sequences is None:
            return True
        is_lost = sequences.resolve()
        if self._transactional_id is not None:
            if is_lost:
                self.on_sequence_lost()
        elif sequences.needs_bump or is_lost:
            sequences.bump()
        if not sequences.identity.is_valid:
            self.on_identity_needed()
        return sequences.identity.is_valid

    def _collect(self) -> dict[int, list[Batch]]:
        """Take at most one batch of each partition, by the brokers that lead them."""
        requests: dict[int, list[Batch]] = {}
        for place, queue in self._queues.items():
            leader = self._cluster.find_leader(place)
            if queue and leader is None:
                self._cluster.request_update()
            elif queue and leader is not None and self._may_send(queue[0], leader.node_id, leader.epoch):
                batch = queue.popleft()
                if self._sequences is not None and not batch.has_sequence:
                    self._sequences.assign(batch)
                batch.sent_in_epoch = leader.epoch
                requests.setdefault(leader.node_id, []).append(batch)
        return requests

    def _may_send(self, batch: Batch, node_id: int, epoch: int) -> bool:
        now = self._clock.seconds()
        return (
            self._requests.get(node_id, 0) < self._settings.max_in_flight
            and self._not_before.get(node_id, 0.0) <= now
            and (batch.retry_at <= now or epoch > batch.sent_in_epoch)
            and self.may_send_to(batch.place)
            and not self._is_muted(batch.place)
            and (self._sequences is None or self._sequences.may_send(batch))
        )

    def _is_muted(self, place: HistoryPartition) -> bool:
        """Return whether the partition's next batch waits for the one before, whichever broker that was sent to."""
        return self._settings.max_in_flight == 1 and any(batch.place == place for batch in self._on_the_wire)

    def _list_next_times(self) -> Iterator[float]:
        """Yield when something may have to be done."""
        now = self._clock.seconds()
        for batch in self._on_the_wire:
            yield batch.created_at + self._settings.delivery_timeout_s
        for queue in self._queues.values():
            for batch in queue:
                yield batch.created_at + self._settings.delivery_timeout_s
            if queue and queue[0].retry_at > now:
                yield queue[0].retry_at
        yield from (time_s for time_s in self._not_before.values() if time_s > now)

    # Requests

    def _send(self, broker: BrokerAddress, batches: list[Batch]) -> None:
        topics: dict[str, TopicProduceData] = {}
        for batch in batches:
            batch.attempts += 1
            batch.is_sequence_reset = False
            self._on_the_wire[batch] = None
            topic = batch.place.topic
            data = topics.setdefault(
                topic, TopicProduceData(name=topic, topic_id=self._cluster.topic_id(topic), partition_data=[])
            )
            data.partition_data.append(
                PartitionProduceData(index=batch.place.partition, records=batch.encode(self._settings.codec))
            )
        request = ProduceRequest(
            transactional_id=self._transactional_id,
            acks=self._settings.acks,
            timeout_ms=int(self._settings.produce_timeout_s * 1000),
            topic_data=list(topics.values()),
        )
        self._requests[broker.node_id] = self._requests.get(broker.node_id, 0) + 1
        names = {data.topic_id: name for name, data in topics.items()}
        self._process.send(broker, request, PRODUCE).addCallbacks(
            self._receive, self._lose, callbackArgs=(broker, batches, names), errbackArgs=(broker, batches)
        ).addErrback(self._process.note_crash)

    def _lose(self, failure: Failure, broker: BrokerAddress, batches: list[Batch]) -> None:
        failure.trap(RequestFailedError)
        self._cluster.note_failure(broker)
        self._not_before[broker.node_id] = self._clock.seconds() + self._settings.reconnect_backoff_s
        self._finish(broker, batches, {})

    def _receive(
        self, response: ProduceResponse, broker: BrokerAddress, batches: list[Batch], names: dict[bytes, str]
    ) -> None:
        by_place: dict[HistoryPartition, PartitionProduceResponse] = {}
        for topic in response.responses:
            name = topic.name or names[topic.topic_id]
            for partition in topic.partition_responses:
                place = HistoryPartition(name, partition.index)
                by_place[place] = partition
                self._cluster.note_leader(place, partition.current_leader, response.node_endpoints)
        self._finish(broker, batches, by_place)

    def _finish(
        self, broker: BrokerAddress, batches: list[Batch], by_place: dict[HistoryPartition, PartitionProduceResponse]
    ) -> None:
        self._requests[broker.node_id] -= 1
        lost = PartitionProduceResponse(index=-1, error_code=ErrorCode.NETWORK_EXCEPTION, base_offset=-1)
        for batch in batches:
            self._on_the_wire.pop(batch, None)
            if not batch.is_done:
                self._finish_batch(batch, by_place.get(batch.place, lost))
        self.wake()

    def _finish_batch(self, batch: Batch, answer: Any) -> None:
        code = answer.error_code
        if code in INVALID_METADATA:
            self._cluster.request_update()
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            if self._sequences is not None:
                self._sequences.complete(batch, answer.base_offset)
            batch.is_done = True
            self.on_delivered(batch, answer.base_offset if not code else -1)
        elif self._sequences is not None and self._sequences.should_retry(batch, code, answer.log_start_offset):
            self._put_back(batch)
        else:
            if self._sequences is not None:
                self._sequences.fail(batch, code, is_rejected=True)
            self._end(batch, code)

    def _put_back(self, batch: Batch) -> None:
        """Let a batch wait in its place in the order of sequence numbers."""
        batch.is_repeated = True
        wait_s = self._settings.retry_backoff_s * FACTOR ** min(batch.attempts - 1, 30)
        wait_s = min(wait_s, self._settings.max_retry_backoff_s) * self._process.rng.uniform(1 - JITTER, 1 + JITTER)
        batch.retry_at = self._clock.seconds() + wait_s
        queue = self._queues[batch.place]
        position = sum(1 for other in queue if other.attempts and other.order < batch.order)
        queue.insert(position, batch)

    def _end(self, batch: Batch, code: int) -> None:
        batch.is_done = True
        self.on_failed(batch, code)
