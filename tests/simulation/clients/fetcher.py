"""Fetching the records of assigned partitions, by the rules of the Java client's Fetcher (KIP-227, KIP-320)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from twisted.python.failure import Failure

from kafkacompat.client.errors import RequestFailedError
from kafkacompat.client.settings import BrokerAddress
from kafkacompat.history.events import READ_COMMITTED, HistoryPartition, Positioned, Read
from kafkacompat.timers import DelayedCall
from kafkacompat.wire.apis.fetch import FetchRequest, FetchResponse, PartitionData
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.simulation.clients.errors import INVALID_METADATA, RETRIABLE
from tests.simulation.clients.fetch_session import FetchSession, WantedFetch
from tests.simulation.clients.fetched_records import read_fetched
from tests.simulation.clients.leaders import EARLIEST, find_epoch_end, find_offset
from tests.simulation.clients.process import ClientProcess
from tests.simulation.clients.settings import ConsumerSettings

FETCH = "fetch"


@dataclass(eq=False)
class FetchPosition:
    """Where a consumer reads a partition.

    ``offset_epoch`` is the leader epoch of the last record before ``offset``, -1 if it is not known. ``leader_epoch`` is the epoch in
    which the position was validated last. ``is_waiting`` while a request decides about the position.
    """

    offset: int
    offset_epoch: int = -1
    leader_epoch: int = -1
    is_waiting: bool = False
    retry_at: float = 0.0


class Fetcher:
    """Reads the assigned partitions and records what it reads.

    ``on_records(partition, records)`` is called for each answer with records. ``truncations`` and ``resets`` are the positions,
    in words, that turned out to be after the end of the leader's log, or out of its range: neither happens without loss.
    """

    def __init__(self, process: ClientProcess, settings: ConsumerSettings) -> None:
        self._process = process
        self._clock = process.clock
        self._cluster = process.cluster
        self._settings = settings
        self._positions: dict[HistoryPartition, FetchPosition] = {}
        self._sessions: dict[int, FetchSession] = {}
        self._fetching: dict[int, None] = {}
        self._not_before: dict[int, float] = {}
        self._timer: DelayedCall | None = None
        self.truncations: list[str] = []
        self.resets: list[str] = []
        self.on_records: Callable[[HistoryPartition, list[tuple[int, str]]], None] = lambda place, records: None
        process.cluster.listeners.append(self.wake)

    @property
    def assigned(self) -> list[HistoryPartition]:
        """The assigned partitions."""
        return list(self._positions)

    def position(self, place: HistoryPartition) -> FetchPosition:
        """Return where a partition is read; raises KeyError if it is not assigned."""
        return self._positions[place]

    def assign(self, offsets: Mapping[HistoryPartition, int]) -> None:
        """Read further partitions, or assigned ones from other offsets."""
        for place, offset in offsets.items():
            self._seek(place, FetchPosition(offset))
        self._cluster.watch(dict.fromkeys(place.topic for place in offsets))
        self.wake()

    def revoke(self, places: Iterable[HistoryPartition]) -> None:
        """Read some partitions no more."""
        for place in places:
            self._positions.pop(place, None)

    def _seek(self, place: HistoryPartition, position: FetchPosition) -> None:
        self._positions[place] = position
        self._process.record(Positioned(self._process.now_ns(), self._process.name, place, position.offset))

    # The loop

    def wake(self) -> None:
        """Fetch what can be fetched, in a later turn."""
        self._wake_at(self._clock.seconds())

    def _wake_at(self, time_s: float) -> None:
        if self._timer is not None and self._timer.active():
            if self._timer.getTime() <= time_s:
                return
            self._timer.cancel()
        self._timer = self._clock.callLater(max(0.0, time_s - self._clock.seconds()), self._run)

    def _run(self) -> None:
        if self._process.is_stopping:
            return
        for node_id, wanted in self._collect().items():
            self._fetch(self._cluster.broker(node_id), wanted)
        now = self._clock.seconds()
        times = [position.retry_at for position in self._positions.values()] + list(self._not_before.values())
        next_at = min((time_s for time_s in times if time_s > now), default=None)
        if next_at is not None:
            self._wake_at(next_at)

    def _collect(self) -> dict[int, dict[HistoryPartition, WantedFetch]]:
        """Collect the partitions that can be fetched by the brokers that lead them and have no request of ours."""
        now = self._clock.seconds()
        requests: dict[int, dict[HistoryPartition, WantedFetch]] = {}
        for place, position in self._positions.items():
            leader = self._cluster.find_leader(place)
            if leader is None:
                self._cluster.request_update()
                continue
            if leader.epoch > position.leader_epoch and not position.is_waiting:
                self._note_new_leader(place, position, leader.epoch)
            is_free = leader.node_id not in self._fetching and self._not_before.get(leader.node_id, 0.0) <= now
            if is_free and not position.is_waiting and position.retry_at <= now:
                wanted = requests.setdefault(leader.node_id, {})
                wanted[place] = WantedFetch(
                    self._cluster.topic_id(place.topic),
                    position.offset,
                    leader.epoch,
                    self._settings.partition_max_bytes,
                )
        return requests

    def _note_new_leader(self, place: HistoryPartition, position: FetchPosition, epoch: int) -> None:
        position.leader_epoch = epoch
        if position.offset_epoch >= 0:
            position.is_waiting = True
            self._process.spawn(self._validate(place, position))

    # Positions

    async def _validate(self, place: HistoryPartition, position: FetchPosition) -> None:
        """Ask the new leader whether its log has the records before the position."""
        epoch, end = await find_epoch_end(self._process, place, position.offset_epoch)
        if self._positions.get(place) is not position:
            return
        if epoch < 0 or end < 0:
            await self._reset(place, position, "the leader knows no epoch of it")
        elif end < position.offset:
            self.truncations.append(f"{place} at offset {position.offset}: epoch {epoch} ends at {end}")
            self._seek(place, FetchPosition(end, epoch, position.leader_epoch))
        position.is_waiting = False
        self.wake()

    async def _reset(self, place: HistoryPartition, position: FetchPosition, why: str) -> None:
        """Begin again at the start of the log (auto.offset.reset=earliest)."""
        self.resets.append(f"{place} at offset {position.offset}: {why}")
        start, _ = await find_offset(self._process, place, EARLIEST, self._settings.isolation)
        if self._positions.get(place) is position:
            self._seek(place, FetchPosition(start))
        self.wake()

    # Requests

    def _fetch(self, broker: BrokerAddress, wanted: dict[HistoryPartition, WantedFetch]) -> None:
        session = self._sessions.setdefault(broker.node_id, FetchSession())
        request = FetchRequest(
            max_wait_ms=int(self._settings.max_wait_s * 1000),
            min_bytes=1,
            max_bytes=self._settings.fetch_max_bytes,
            isolation_level=int(self._settings.isolation == READ_COMMITTED),
        )
        session.fill(request, wanted)
        self._fetching[broker.node_id] = None
        self._process.send(broker, request, FETCH).addCallbacks(
            self._receive, self._lose, callbackArgs=(broker, session, wanted), errbackArgs=(broker, session)
        ).addErrback(self._process.note_crash)

    def _lose(self, failure: Failure, broker: BrokerAddress, session: FetchSession) -> None:
        failure.trap(RequestFailedError)
        session.fail()
        self._cluster.note_failure(broker)
        self._not_before[broker.node_id] = self._clock.seconds() + self._settings.retry_backoff_s
        self._end_request(broker)

    def _receive(
        self,
        response: FetchResponse,
        broker: BrokerAddress,
        session: FetchSession,
        wanted: dict[HistoryPartition, WantedFetch],
    ) -> None:
        for place, data in session.receive(response):
            self._cluster.note_leader(place, data.current_leader, response.node_endpoints)
            position = self._positions.get(place)
            if position is not None and position.offset == wanted[place].offset and not position.is_waiting:
                self._take(place, position, data)
        self._end_request(broker)

    def _end_request(self, broker: BrokerAddress) -> None:
        del self._fetching[broker.node_id]
        self.wake()

    def _take(self, place: HistoryPartition, position: FetchPosition, data: PartitionData) -> None:
        code = data.error_code
        if not code:
            self._read(place, position, data)
        elif code == ErrorCode.OFFSET_OUT_OF_RANGE:
            position.is_waiting = True
            self._process.spawn(self._reset(place, position, "it is out of range"))
        elif code in RETRIABLE:
            position.retry_at = self._clock.seconds() + self._settings.retry_backoff_s
            if code in INVALID_METADATA or code == ErrorCode.OFFSET_NOT_AVAILABLE:
                self._cluster.request_update()
        else:
            raise KafkaError(ErrorCode(code), str(place))

    def _read(self, place: HistoryPartition, position: FetchPosition, data: PartitionData) -> None:
        is_committed = self._settings.isolation == READ_COMMITTED
        records = data.records
        if not isinstance(records, bytes | memoryview) or not len(records):
            return
        fetched = read_fetched(records, position.offset, (data.aborted_transactions or ()) if is_committed else None)
        position.offset = fetched.next_offset
        position.offset_epoch = fetched.leader_epoch if fetched.leader_epoch >= 0 else position.offset_epoch
        if fetched.records:
            self._process.record(
                Read(self._process.now_ns(), self._process.name, self._settings.isolation, place, fetched.records)
            )
            self.on_records(place, fetched.records)
