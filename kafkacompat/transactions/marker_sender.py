"""Sending transaction markers to the leaders of their partitions: to this broker's own, and by WriteTxnMarkers to others."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred, succeed

from kafkacompat.storage.producers.transaction_marker import Marker
from kafkacompat.transactions.broker_queue import MOST_PARTITIONS, BrokerQueue, SendRequest
from kafkacompat.transactions.markers import MarkerCodes, MarkerWriter
from kafkacompat.transactions.records import group_by_topic
from kafkacompat.transactions.transaction import TopicPartition
from kafkacompat.wire.apis.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafkacompat.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kafkacompat.metadata.image import ImageHolder

log = logging.getLogger(__name__)

PURPOSE = "transaction markers"


@dataclass(slots=True, eq=False)
class _SentMarker:
    """A marker for partitions of one broker; implements `QueueEntry`. ``answer`` fires with the code of each partition."""

    marker: Marker
    partitions: Collection[TopicPartition]
    answer: Deferred[MarkerCodes] = field(default_factory=Deferred)

    @property
    def key(self) -> int:
        return self.marker.producer_id

    @property
    def partition_count(self) -> int:
        return len(self.partitions)


class MarkerSender:
    """Sends markers to the brokers that lead the partitions in the image; ``local`` writes those of this broker.

    The markers of several transactions for one broker go in one request. A marker that was not written is not sent again: the
    caller repeats it, and the image may name another leader then.
    """

    def __init__(
        self, node_id: int, metadata: ImageHolder, local: MarkerWriter, send: SendRequest, request_timeout_ms: int
    ) -> None:
        self._node_id = node_id
        self._metadata = metadata
        self._local = local
        self._send_request = send
        self._timeout_s = request_timeout_ms / 1000
        self._queues: dict[int, BrokerQueue[_SentMarker]] = {}

    def send(self, marker: Marker, partitions: Collection[TopicPartition]) -> Sequence[Deferred[MarkerCodes]]:
        """See MarkerTransport."""
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in partitions:
            by_leader.setdefault(self._find_leader(partition), []).append(partition)
        return [sent for leader, led in by_leader.items() for sent in self._send_to(leader, marker, led)]

    def _find_leader(self, partition: TopicPartition) -> int:
        """Return the leader. A partition that the image does not have may be this broker's: orders come before metadata."""
        image = self._metadata.image.partition(*partition)
        return self._node_id if image is None else image.leader

    def _send_to(
        self, leader: int, marker: Marker, partitions: list[TopicPartition]
    ) -> Iterator[Deferred[MarkerCodes]]:
        if leader == self._node_id:
            yield self._local.write(marker, partitions)
        elif leader < 0:
            yield succeed(dict.fromkeys(partitions, ErrorCode.LEADER_NOT_AVAILABLE))
        else:
            rest = iter(partitions)
            while piece := tuple(islice(rest, MOST_PARTITIONS)):
                entry = _SentMarker(marker, piece)
                self._find_queue(leader).add(entry)
                yield entry.answer

    def _find_queue(self, node_id: int) -> BrokerQueue[_SentMarker]:
        queue = self._queues.get(node_id)
        if queue is None:
            queue = self._queues[node_id] = BrokerQueue(lambda batch: self._send_batch(node_id, batch))
        return queue

    def _send_batch(self, node_id: int, batch: list[_SentMarker]) -> Deferred[None]:
        return Deferred.fromCoroutine(self._send_and_answer(node_id, batch))

    async def _send_and_answer(self, node_id: int, batch: list[_SentMarker]) -> None:
        request = WriteTxnMarkersRequest(markers=[_build_marker(entry) for entry in batch])
        codes: dict[int, MarkerCodes] = {}
        missing = ErrorCode.UNKNOWN_SERVER_ERROR
        try:
            response = await self._send_request(node_id, PURPOSE, request, self._timeout_s)
            codes = _read_codes(response)
        except Exception as problem:
            log.warning("Broker %d does not answer WriteTxnMarkers: %s", node_id, problem)
            missing = ErrorCode.NETWORK_EXCEPTION
        for entry in batch:
            answered = codes.get(entry.marker.producer_id, {})
            entry.answer.callback({partition: answered.get(partition, missing) for partition in entry.partitions})


def _build_marker(entry: _SentMarker) -> WritableTxnMarker:
    marker = entry.marker
    return WritableTxnMarker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transaction_result=marker.is_commit,
        topics=[
            WritableTxnMarkerTopic(name=part.topic, partition_indexes=part.partition_ids)
            for part in group_by_topic(entry.partitions)
        ],
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.transaction_version,
    )


def _read_codes(response: WriteTxnMarkersResponse) -> dict[int, MarkerCodes]:
    """Return the codes of a response by producer id. Raises ValueError for an unknown code."""
    by_producer: dict[int, MarkerCodes] = {}
    for result in response.markers:
        codes = by_producer.setdefault(result.producer_id, {})
        for topic in result.topics:
            for partition in topic.partitions:
                codes[topic.name, partition.partition_index] = ErrorCode(partition.error_code)
    return by_producer
