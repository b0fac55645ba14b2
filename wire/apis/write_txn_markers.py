"""WriteTxnMarkers (key 27): write the end of transactions to their partitions."""

from __future__ import annotations

from kafkacompat.wire.entities import TOPIC
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int8, int16, int32, int64, string


class WritableTxnMarkerTopic(Struct):
    """The partitions of one topic."""

    name: str = string(entity=TOPIC)
    partition_indexes: list[int] = array(int32())


class WritableTxnMarker(Struct):
    """The end of one transaction."""

    producer_id: int = int64()
    producer_epoch: int = int16()
    transaction_result: bool = boolean()  # true: commit, false: abort
    topics: list[WritableTxnMarkerTopic] = array(WritableTxnMarkerTopic)
    # the coordinator's epoch; the broker rejects a marker with an older one
    coordinator_epoch: int = int32()
    # 0, 1: the producer epoch may equal that of the records, 2: it must be newer (KIP-1228)
    transaction_version: int = int8(versions="2+")


class WriteTxnMarkersRequest(Request, api_key=27, versions="0-2", flexible="1+"):
    """Write the given markers. A transaction coordinator sends this request."""

    markers: list[WritableTxnMarker] = array(WritableTxnMarker)


class WritableTxnMarkerPartitionResult(Struct):
    """The outcome for one partition."""

    partition_index: int = int32()
    error_code: int = int16()


class WritableTxnMarkerTopicResult(Struct):
    """The outcomes for one topic."""

    name: str = string(entity=TOPIC)
    partitions: list[WritableTxnMarkerPartitionResult] = array(WritableTxnMarkerPartitionResult)


class WritableTxnMarkerResult(Struct):
    """The outcomes for one transaction."""

    producer_id: int = int64()
    topics: list[WritableTxnMarkerTopicResult] = array(WritableTxnMarkerTopicResult)


class WriteTxnMarkersResponse(Response, api_key=27, versions="0-2", flexible="1+"):
    """The outcome for each marker."""

    markers: list[WritableTxnMarkerResult] = array(WritableTxnMarkerResult)
