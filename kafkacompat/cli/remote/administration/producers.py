"""The producers of a partition, and the end of a hanging transaction there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacompat.cli.cluster.reading import PartitionName
from kafkacompat.cli.remote.administration.log_offsets import find_leaders
from kafkacompat.cli.remote.administration.topic_names import explain_topic
from kafkacompat.cli.remote.errors import RemoteError, explain_refusal
from kafkacompat.cli.remote.outcomes import Outcome, write_outcomes
from kafkacompat.wire.apis.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
)
from kafkacompat.wire.apis.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from kafkacompat.cli.remote.cluster import RemoteCluster
    from kafkacompat.cli.remote.output import Output

NONE = -1


def describe_producers(cluster: RemoteCluster, output: Output, topic: str, partition: int) -> None:
    """Write the producers of a partition; raises RemoteError."""
    leader = _find_leader(cluster, topic, partition)
    rows = [describe_producer(producer) for producer in _read_producers(cluster, leader, topic, partition)]
    output.write_rows(rows, f"The partition {topic}-{partition} has no idempotent producers")


def describe_producer(producer: ProducerState) -> dict[str, int | None]:
    """Return the row of a producer; ``start_offset`` is that of its open transaction."""
    return {
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "coordinator_epoch": _or_none(producer.coordinator_epoch),
        "last_sequence": _or_none(producer.last_sequence),
        "last_timestamp_ms": _or_none(producer.last_timestamp),
        "start_offset": _or_none(producer.current_txn_start_offset),
    }


def _or_none(number: int) -> int | None:
    return None if number == NONE else number


def _find_leader(cluster: RemoteCluster, topic: str, partition: int) -> int:
    """Return the leader of a partition; raises RemoteError."""
    (described,) = cluster.read_topics([topic])
    if described.error_code:
        raise RemoteError(explain_topic(cluster, topic, described.error_code))
    leader = find_leaders([described]).get(PartitionName(topic, partition))
    if leader is None:
        raise RemoteError(
            f"the topic {topic} has no partition {partition}: the last one is {len(described.partitions) - 1}"
        )
    if leader < 0:
        raise RemoteError(f"the partition {topic}-{partition} has no leader: try again later")
    return leader


def _read_producers(cluster: RemoteCluster, leader: int, topic: str, partition: int) -> list[ProducerState]:
    """Return the producers of a partition by their ids; raises RemoteError."""
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[partition])])
    response = cluster.request_broker(leader, request, DescribeProducersResponse)
    return sorted(list_producers(topic, response.topics[0].partitions[0]), key=lambda producer: producer.producer_id)


def list_producers(topic: str, described: PartitionResponse) -> list[ProducerState]:
    """Return the producers of a partition in a response; raises RemoteError if the leader refuses."""
    if described.error_code:
        reason = explain_refusal(described.error_code, described.error_message)
        raise RemoteError(f"the producers of {topic}-{described.partition_index} are not shown: {reason}")
    return described.active_producers


def abort_hanging_transaction(
    cluster: RemoteCluster, output: Output, topic: str, partition: int, start_offset: int
) -> int:
    """Write an abort marker for the transaction that begins at an offset; returns the exit code. Raises RemoteError."""
    leader = _find_leader(cluster, topic, partition)
    producers = _read_producers(cluster, leader, topic, partition)
    producer = next((known for known in producers if known.current_txn_start_offset == start_offset), None)
    if producer is None:
        place = f"{topic}-{partition} at offset {start_offset}"
        raise RemoteError(f"no open transaction begins in {place}: `transactions describe-producers` lists them")
    marker = WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
        # -1 says that no transaction of the producer has ended here.
        coordinator_epoch=max(producer.coordinator_epoch, 0),
    )
    request = WriteTxnMarkersRequest(markers=[marker])
    response = cluster.request_broker(leader, request, WriteTxnMarkersResponse)
    code = response.markers[0].topics[0].partitions[0].error_code
    outcome = Outcome(f"{topic}-{partition} at {start_offset}", explain_refusal(code) if code else None)
    return write_outcomes(output, "transaction", "aborted", [outcome])
