"""Transactions that hang: they stay open in a partition, because no coordinator will ever write their markers.

A transaction counts as hanging if it is open in a partition for longer than any transaction may last, and no coordinator has a
transaction of its producer that includes the partition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kafkacompat.cli.cluster.reading import PartitionName
from kafkacompat.cli.remote.administration.log_offsets import divide_by_leader, find_leaders
from kafkacompat.cli.remote.administration.producers import describe_producer, list_producers
from kafkacompat.cli.remote.administration.topic_names import explain_topic
from kafkacompat.cli.remote.administration.transactions import read_transaction, read_transactions
from kafkacompat.cli.remote.errors import RemoteError
from kafkacompat.wire.apis.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducerState,
    TopicRequest,
)

if TYPE_CHECKING:
    from kafkacompat.cli.remote.cluster import RemoteCluster
    from kafkacompat.cli.remote.output import Output

GRACE_MS = 5 * 60_000
"""A coordinator checks for overlong transactions from time to time, and its markers take time."""
PARTITIONS_A_REQUEST = 1000


class OpenTransaction(NamedTuple):
    """A producer with an open transaction in a partition."""

    name: PartitionName
    producer: ProducerState


def find_hanging(
    cluster: RemoteCluster, output: Output, topics: Sequence[str] | None, max_timeout_ms: int, now_ms: int
) -> None:
    """Write the transactions that hang, in some topics or in all; raises RemoteError."""
    before_ms = now_ms - max_timeout_ms - GRACE_MS
    candidates = [
        transaction
        for transaction in _list_open_transactions(cluster, topics)
        if transaction.producer.last_timestamp < before_ms
    ]
    known = _list_known_partitions(cluster, {transaction.producer.producer_id for transaction in candidates})
    rows = [
        {
            "topic": name.topic,
            "partition": name.partition,
            **describe_producer(producer),
            "open_ms": now_ms - producer.last_timestamp,
        }
        for name, producer in candidates
        if (producer.producer_id, name) not in known
    ]
    output.write_rows(rows, "No transaction hangs")


def _list_open_transactions(cluster: RemoteCluster, topics: Sequence[str] | None) -> Iterator[OpenTransaction]:
    """Yield the open transactions of all partitions that have a leader; raises RemoteError."""
    described = cluster.read_topics(topics)
    for topic in described:
        if topic.error_code:
            raise RemoteError(explain_topic(cluster, topic.name or "", topic.error_code))
    for leader, names in divide_by_leader(find_leaders(described), PARTITIONS_A_REQUEST):
        response = cluster.request_broker(leader, _build_request(names), DescribeProducersResponse)
        yield from _read_open_transactions(response)


def _build_request(names: Iterable[PartitionName]) -> DescribeProducersRequest:
    partitions: dict[str, list[int]] = defaultdict(list)
    for name in names:
        partitions[name.topic].append(name.partition)
    return DescribeProducersRequest(
        topics=[TopicRequest(name=topic, partition_indexes=indexes) for topic, indexes in partitions.items()]
    )


def _read_open_transactions(response: DescribeProducersResponse) -> Iterator[OpenTransaction]:
    for topic in response.topics:
        for partition in topic.partitions:
            for producer in list_producers(topic.name, partition):
                if producer.current_txn_start_offset >= 0:
                    yield OpenTransaction(PartitionName(topic.name, partition.partition_index), producer)


def _list_known_partitions(cluster: RemoteCluster, producer_ids: set[int]) -> set[tuple[int, PartitionName]]:
    """Return the partitions of these producers' transactions as their coordinators know them."""
    known = set()
    for row in read_transactions(cluster) if producer_ids else ():
        if row["producer_id"] in producer_ids:
            state = read_transaction(cluster, str(row["transactional_id"]))
            known |= {
                (state.producer_id, PartitionName(topic.topic, index))
                for topic in state.topics
                for index in topic.partitions
            }
    return known
