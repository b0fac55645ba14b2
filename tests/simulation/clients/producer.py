"""Producers without transactions: idempotent ones, and plain ones that send each record once."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from twisted.internet.defer import Deferred

from kafkacompat.history.events import Acknowledged, HistoryPartition, Send
from kafkacompat.history.index import value_text
from kafkacompat.timers import Clock
from kafkacompat.wire.apis.init_producer_id import InitProducerIdRequest
from tests.fakes.memory_network import MemoryHost
from tests.simulation.clients.batches import Batch, BatchValue, ProducerIdentity
from tests.simulation.clients.process import ClientProcess, HistorySink
from tests.simulation.clients.sender import BatchSender
from tests.simulation.clients.sequences import Sequences
from tests.simulation.clients.settings import ProducerSettings


class Producer:
    """Sends numbered values to some partitions, one after the other.

    A producer without idempotence may have its records in the log in another order than it sent them, since they travel by several
    connections. So each of its values is of a client of its own in the history: `<name>-<number>:0`. With acks=1 an acknowledged record
    is lost when its leader fails. So the history has no acknowledgement of it; ``acknowledged`` counts all of them.
    """

    def __init__(
        self,
        clock: Clock,
        network: MemoryHost,
        rng: Random,
        bootstrap: Sequence[tuple[str, int]],
        sink: HistorySink,
        name: str,
        settings: ProducerSettings,
        places: Sequence[HistoryPartition],
    ) -> None:
        self.process = ClientProcess(clock, network, rng, bootstrap, sink, name, settings)
        self.acknowledged = self.failed = 0
        self._settings = settings
        self._main: Deferred[None] = Deferred()
        self._places = list(places)
        self._sequences = Sequences() if settings.is_idempotent else None
        self._sender = BatchSender(self.process, settings, self._sequences)
        self._sender.on_delivered = self._note_delivered
        self._sender.on_failed = self._note_failed
        self._sender.on_identity_needed = self._request_identity
        self._is_requesting = False
        self._number = 0

    @property
    def bumps(self) -> int:
        """How often the producer took a new epoch by itself."""
        return 0 if self._sequences is None else self._sequences.bumps

    def start(self) -> None:
        """Begin to send."""
        self.process.cluster.watch(dict.fromkeys(place.topic for place in self._places))
        self._main = self.process.spawn(self._work())

    def stop(self) -> Deferred[None]:
        """Send no new values; fires when the fate of all values is known or has timed out."""
        return self.process.finish(self._main)

    def kill(self) -> None:
        """End the process."""
        self.process.kill()

    async def _work(self) -> None:
        process = self.process
        while not process.is_stopping:
            if self._sender.queued_batches < self._settings.max_queued_batches:
                self._send_value()
            await process.sleep(process.rng.uniform(*self._settings.pause_s))
        while not self._sender.is_idle:
            await process.sleep(self._settings.retry_backoff_s)

    def _send_value(self) -> None:
        place = self.process.rng.choice(self._places)
        client, number = self._name_value(self._number)
        self.process.record(Send(self.process.now_ns(), client, number, place))
        text = value_text(client, number)
        self._sender.append(place, BatchValue(self._number, text, int(self.process.clock.seconds() * 1000)))
        self._number += 1

    def _name_value(self, number: int) -> tuple[str, int]:
        """Return the client and the number that a value has in the history."""
        name = self.process.name
        return (name, number) if self._settings.is_idempotent else (f"{name}-{number}", 0)

    def _note_delivered(self, batch: Batch, offset: int) -> None:
        for delta, value in enumerate(batch.values):
            self.acknowledged += 1
            if self._settings.acks == -1:
                client, number = self._name_value(value.number)
                at = offset + delta if offset >= 0 else -1
                self.process.record(Acknowledged(self.process.now_ns(), client, number, at))

    def _note_failed(self, batch: Batch, code: int) -> None:
        self.failed += len(batch.values)

    def _request_identity(self) -> None:
        if not self._is_requesting:
            self._is_requesting = True
            self.process.spawn(self._init_producer_id())

    async def _init_producer_id(self) -> None:
        assert self._sequences is not None
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        response = await self.process.ask_any(request)
        self._sequences.begin(ProducerIdentity(response.producer_id, response.producer_epoch))
        self._is_requesting = False
        self._sender.wake()
