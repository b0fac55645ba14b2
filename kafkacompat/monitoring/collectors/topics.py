"""Bytes, records and requests by topic.

The partitions count; a scrape adds what is new to the totals of the topics. So a topic's counters do not go back when one of its
partitions moves to another broker, and a topic without a series of its own is in the series of all others from its first record on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from operator import attrgetter, sub
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from kafkacompat.metrics.places import OTHER, SeriesPlaces
from kafkacompat.monitoring.collectors import IN_A_TURN, Collected
from kafkacompat.monitoring.table import Family

if TYPE_CHECKING:
    from kafkacompat.metrics.partitions import PartitionTraffic
    from kafkacompat.partitions.partition import Partition

PREFIX = "kafka_server_brokertopicmetrics_"
COUNTERS = {
    "messagesin": "led_records",
    "bytesin": "led_bytes",
    "bytesout": "sent_bytes",
    "replicationbytesin": "followed_bytes",
    "replicationbytesout": "sent_to_replicas_bytes",
    "totalproducerequests": "produces",
    "failedproducerequests": "refused_appends",
    "totalfetchrequests": "fetches",
    "failedfetchrequests": "refused_fetches",
}
"""Kafka's names, and the counters of `PartitionTraffic`."""
read_counts: Callable[[PartitionTraffic], tuple[int, ...]] = attrgetter(*COUNTERS.values())


class TopicCollector:
    """Keeps the totals of each topic between scrapes."""

    def __init__(self, places: SeriesPlaces[str]) -> None:
        self._places = places
        self._seen: WeakKeyDictionary[Partition, tuple[int, ...]] = WeakKeyDictionary()
        self._all: Counter[str] = Counter()
        self._by_topic: dict[str, Counter[str]] = {}
        self._topics: set[str] = set()

    def begin_pass(self) -> None:
        """See PartitionCounter."""
        self._topics.clear()

    def add_partition(self, partition: Partition) -> None:
        """Add what the partition has counted since the scrape before."""
        self._topics.add(partition.topic)
        traffic = partition.traffic
        traffic.update(partition.log)
        counts, before = read_counts(traffic), self._seen.get(partition)
        if counts == before:
            return
        topic = partition.topic if self._places.take(partition.topic) else OTHER
        totals = self._by_topic.setdefault(topic, Counter())
        for name, new in zip(COUNTERS, counts if before is None else map(sub, counts, before), strict=True):
            totals[name] += new
            self._all[name] += new
        self._seen[partition] = counts

    def collect(self) -> Collected:
        """Yield the metrics."""
        for topic in self._by_topic.keys() - self._topics - {OTHER}:
            del self._by_topic[topic]
        self._places.keep(self._topics)
        families = {name: Family(PREFIX + name) for name in COUNTERS}
        for name, family in families.items():
            family.add(self._all[name])
        for number, (topic, totals) in enumerate(sorted(self._by_topic.items()), 1):
            for name, family in families.items():
                family.add(totals[name], topic=topic)
            if number % IN_A_TURN == 0:
                yield None
        yield from (family.metric for family in families.values())
