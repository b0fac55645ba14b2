"""WriteTxnMarkers (key 27), v0-2: write the markers that end transactions.

v1     flexible
v2     the marker names the transaction version (KIP-1228)

Transaction coordinators send it, and administrators that abort a hanging transaction (`kafka-transactions abort`).
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.storage.producers.transaction_marker import Marker
from kafkacompat.timers import yield_in_turns
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
    """Write all markers; return the result of each, grouped by producer id."""
    return answer_in_order(_write_markers(request, services))


async def _write_markers(request: WriteTxnMarkersRequest, services: Services) -> WriteTxnMarkersResponse:
    under_way = []
    async for marker in yield_in_turns(services.clock, request.markers):
        written = services.coordinators.transactions.markers.write(_parse_marker(marker), _list_partitions(marker))
        under_way.append((marker.producer_id, written))
    by_producer: dict[int, MarkerCodes] = {}
    for producer_id, written in under_way:
        if codes := await written:
            by_producer.setdefault(producer_id, {}).update(codes)
    return _build_response(by_producer)


def _parse_marker(wanted: WritableTxnMarker) -> Marker:
    return Marker(
        wanted.producer_id,
        wanted.producer_epoch,
        wanted.coordinator_epoch,
        wanted.transaction_result,
        wanted.transaction_version,
    )


def _list_partitions(wanted: WritableTxnMarker) -> dict[tuple[str, int], None]:
    """Return each partition once, in the order of the request."""
    return {(topic.name, partition): None for topic in wanted.topics for partition in topic.partition_indexes}


def _build_response(by_producer: Mapping[int, MarkerCodes]) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(producer_id=producer_id, topics=_build_topics(codes))
            for producer_id, codes in by_producer.items()
        ]
    )


def _build_topics(codes: MarkerCodes) -> list[WritableTxnMarkerTopicResult]:
    topics: dict[str, list[WritableTxnMarkerPartitionResult]] = {}
    for (topic, partition), code in codes.items():
        result = WritableTxnMarkerPartitionResult(partition_index=partition, error_code=code)
        topics.setdefault(topic, []).append(result)
    return [WritableTxnMarkerTopicResult(name=name, partitions=results) for name, results in topics.items()]
