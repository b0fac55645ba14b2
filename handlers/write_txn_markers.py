"""WriteTxnMarkers (key 27), v0-2: write the end of transactions to their partitions.

v1     flexible
v2     the marker says in which transaction version it was decided (KIP-1228)

Coordinators send it, and administrators who end a transaction that hangs (`kafka-transactions abort`).
"""

from __future__ import annotations

from collections.abc import Sequence

from twisted.internet.defer import gatherResults

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.storage.transaction_marker import Marker
from kafkacompat.transactions.markers import MarkerCodes
from kafkacompat.wire.apis.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


def handle_write_txn_markers(
    request: WriteTxnMarkersRequest, context: RequestContext, services: Services
) -> Pending[WriteTxnMarkersResponse]:
    """Write them all; the answer tells what became of each, in one place for each producer id."""
    producer_ids = [each.producer_id for each in request.markers]
    written = [services.transactions.markers.write(_marker(each), _partitions(each)) for each in request.markers]
    codes = gatherResults(written, consumeErrors=True)
    return Pending(codes.addCallback(lambda codes: _response(producer_ids, codes)), in_order=True)


def _marker(wanted: WritableTxnMarker) -> Marker:
    return Marker(
        wanted.producer_id,
        wanted.producer_epoch,
        wanted.coordinator_epoch,
        wanted.transaction_result,
        wanted.transaction_version,
    )


def _partitions(wanted: WritableTxnMarker) -> dict[tuple[str, int], None]:
    """Each partition once, in the order of the request."""
    return {(topic.name, partition): None for topic in wanted.topics for partition in topic.partition_indexes}


def _response(producer_ids: Sequence[int], codes: Sequence[MarkerCodes]) -> WriteTxnMarkersResponse:
    by_producer: dict[int, MarkerCodes] = {}
    for producer_id, each in zip(producer_ids, codes, strict=True):
        by_producer.setdefault(producer_id, {}).update(each)
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(producer_id=producer_id, topics=_topics(each))
            for producer_id, each in by_producer.items()
        ]
    )


def _topics(codes: MarkerCodes) -> list[WritableTxnMarkerTopicResult]:
    topics: dict[str, list[WritableTxnMarkerPartitionResult]] = {}
    for (topic, partition), code in codes.items():
        result = WritableTxnMarkerPartitionResult(partition_index=partition, error_code=code)
        topics.setdefault(topic, []).append(result)
    return [WritableTxnMarkerTopicResult(name=name, partitions=each) for name, each in topics.items()]
