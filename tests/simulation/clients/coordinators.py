"""Requests to the coordinator of a group or of a transactional id, which is looked up when it is not known or has moved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from kafkacompat.client.settings import BrokerAddress
from kafkacompat.history.events import Fetched, HistoryPartition
from kafkacompat.wire.apis.find_coordinator import FindCoordinatorRequest
from kafkacompat.wire.apis.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.schema import Request
from tests.simulation.clients.errors import OLD_COORDINATOR, RETRIABLE
from tests.simulation.clients.process import ClientProcess

GROUP, TRANSACTION = 0, 1
COORDINATOR = "coordinator"


def find_own_error(response: Any) -> int:
    """Return the error of a response that has one for all of it."""
    code: int = response.error_code
    return code


class Coordinator:
    """The coordinator of a key, as the client knows it. *kind* is GROUP or TRANSACTION."""

    def __init__(self, process: ClientProcess, kind: int, key: str) -> None:
        self.key = key
        self._process = process
        self._kind = kind
        self._broker: BrokerAddress | None = None

    async def find(self) -> BrokerAddress:
        """Return the coordinator; look it up if it is not known."""
        if self._broker is None:
            request = FindCoordinatorRequest(key=self.key, key_type=self._kind, coordinator_keys=[self.key])
            response = await self._process.ask_any(request, lambda response: response.coordinators[0].error_code)
            coordinator = response.coordinators[0]
            self._broker = BrokerAddress(coordinator.node_id, coordinator.host, coordinator.port)
        return self._broker

    async def try_once(
        self,
        request: Request,
        find_error: Callable[[Any], int] = find_own_error,
        purpose: str = COORDINATOR,
        longer_s: float = 0.0,
    ) -> Any:
        """Send a request once; raises KafkaError with its error, or with NETWORK_EXCEPTION if there is no response."""
        broker = await self.find()
        try:
            response = await self._process.try_send(broker, request, purpose, longer_s)
            if code := find_error(response):
                raise KafkaError(ErrorCode(code), type(request).__name__)
        except KafkaError as problem:
            if problem.code in OLD_COORDINATOR and self._broker == broker:
                self._broker = None
            raise
        return response

    async def ask(
        self,
        request: Request | Callable[[], Request],
        find_error: Callable[[Any], int] = find_own_error,
        purpose: str = COORDINATOR,
    ) -> Any:
        """Send a request until it is answered; raises KafkaError for an error after which no client repeats it.

        With a function, each attempt sends a request that it builds.
        """
        backoff = self._process.make_backoff()
        while True:
            try:
                return await self.try_once(request() if callable(request) else request, find_error, purpose)
            except KafkaError as problem:
                if problem.code not in RETRIABLE:
                    raise
            await self._process.sleep(backoff.next_s())


async def fetch_committed(
    process: ClientProcess,
    coordinator: Coordinator,
    places: Sequence[HistoryPartition],
    member_id: str | None = None,
    member_epoch: int = -1,
) -> dict[HistoryPartition, int]:
    """Fetch a group's committed offsets, -1 where there is none, and record them.

    Waits while a transaction may change one of them. Asks again after the answer of a coordinator that is replaced: until it knows that,
    it answers with the offsets of its time, as in Kafka. Raises KafkaError for an error after which no client repeats the request, and
    for any error once the client stops: the offsets of a transaction that the coordinators have lost never become stable.
    """
    backoff = process.make_backoff()
    cluster = process.cluster
    cluster.watch(dict.fromkeys(place.topic for place in places))
    while True:
        names = {cluster.topic_id(place.topic): place.topic for place in places}
        asked_ns = process.now_ns()
        request = _build_offset_fetch(coordinator.key, names, places, member_id, member_epoch)
        try:
            broker = await coordinator.find()
            response = await coordinator.try_once(request, _find_offset_error)
        except KafkaError as problem:
            if problem.code not in RETRIABLE or process.is_stopping:
                raise
            if problem.code in (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                cluster.request_update()
        else:
            if process.is_coordinator(coordinator.key, broker.node_id):
                offsets = dict(_list_offsets(response, names))
                for place, offset in offsets.items():
                    process.record(Fetched(process.now_ns(), process.name, coordinator.key, place, offset, asked_ns))
                return offsets
        await process.sleep(backoff.next_s())


def _build_offset_fetch(
    group: str, names: dict[bytes, str], places: Iterable[HistoryPartition], member_id: str | None, member_epoch: int
) -> OffsetFetchRequest:
    topics = [
        OffsetFetchRequestTopics(
            name=name,
            topic_id=topic_id,
            partition_indexes=[place.partition for place in places if place.topic == name],
        )
        for topic_id, name in names.items()
    ]
    wanted = OffsetFetchRequestGroup(group_id=group, member_id=member_id, member_epoch=member_epoch, topics=topics)
    return OffsetFetchRequest(groups=[wanted], require_stable=True)


def _find_offset_error(response: OffsetFetchResponse) -> int:
    group = response.groups[0]
    codes = [partition.error_code for topic in group.topics for partition in topic.partitions]
    return group.error_code or next((code for code in codes if code), 0)


def _list_offsets(response: OffsetFetchResponse, names: dict[bytes, str]) -> Iterator[tuple[HistoryPartition, int]]:
    for topic in response.groups[0].topics:
        for partition in topic.partitions:
            yield HistoryPartition(names[topic.topic_id], partition.partition_index), partition.committed_offset
