"""The traffic of partitions is counted for /metrics, and not at all without it."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.metrics.requests import RequestMetrics
from kafkacompat.wire.apis.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from kafkacompat.wire.apis.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from tests.handlers.data_node import DataNode

FETCHED = ("fetches", "refused_fetches", "sent_bytes")
PRODUCED = ("produces", "refused_appends")


def count(names: tuple[str, ...], *, has_metrics: bool) -> list[int]:
    """The counters of t-0 after a batch, a refused one, a fetch, and a refused fetch."""
    node = DataNode()
    if has_metrics:
        node.services.requests = RequestMetrics(node.node.clock.seconds)
    node.append("t", 0)
    refused = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=b"no batch" * 20)])
    node.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=[refused]), ProduceResponse, 9)
    for offset in (0, 99):
        partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1_000_000)
        topics = [FetchTopic(topic="t", partitions=[partition])]
        node.ask(FetchRequest(min_bytes=1, max_bytes=1_000_000, topics=topics), FetchResponse, 12)
    traffic: Any = node.node.replicas.find("t", 0).traffic
    return [getattr(traffic, name) for name in names]


@pytest.mark.parametrize("names", [FETCHED, PRODUCED])
def test_nothing_is_counted_without_metrics(names: tuple[str, ...]) -> None:
    assert count(names, has_metrics=False) == [0] * len(names)


def test_with_metrics_every_request_counts() -> None:
    fetches, refused, size_bytes = count(FETCHED, has_metrics=True)
    assert (fetches, refused) == (2, 1) and size_bytes > 0
    assert count(PRODUCED, has_metrics=True) == [1, 1]
