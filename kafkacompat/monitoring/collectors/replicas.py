"""The replicas of this broker: leaders, in-sync sets, logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacompat.metrics.partitions import InSyncCounts
from kafkacompat.metrics.places import OTHER, SeriesPlaces
from kafkacompat.monitoring.collectors import IN_A_TURN, Collected
from kafkacompat.monitoring.table import Family, make_metric

if TYPE_CHECKING:
    from kafkacompat.monitoring.observed import Observed
    from kafkacompat.partitions.partition import Partition

MANAGER = "kafka_server_replicamanager_"
PARTITION = "kafka_cluster_partition_"
LOG = "kafka_log_log_"
SUMMED = (f"{LOG}size", f"{LOG}numlogsegments")
SINGLE = (f"{LOG}logstartoffset", f"{LOG}logendoffset")
IN_SYNC_FLAGS = {"underreplicated": "partitions", "underminisr": "partitioncount", "atminisr": "partitioncount"}
"""The flags of a partition, and the suffix of the number of flagged partitions in Kafka's names."""
LEADERS, PRODUCER_IDS = f"{MANAGER}leadercount", f"{MANAGER}produceridcount"
FLAGGED = tuple(MANAGER + flag + suffix for flag, suffix in IN_SYNC_FLAGS.items())
LED = tuple(
    PARTITION + name for name in ("insyncreplicascount", "replicascount", "laststableoffsetlag", *IN_SYNC_FLAGS)
)
FOLLOWER_LAG = "kafka_server_fetcherlagmetrics_consumerlag"
REPLICA_CLIENT = "Replica"


class ReplicaCollector:
    """Collects what the partitions know. Only the first partitions have series of their own."""

    def __init__(self, observed: Observed, limit: int) -> None:
        self._observed = observed
        self._places: SeriesPlaces[tuple[str, int]] = SeriesPlaces(limit)
        self._survey = _Survey(self._places)

    def begin_pass(self) -> None:
        """See PartitionCounter."""
        self._survey = _Survey(self._places)

    def add_partition(self, partition: Partition) -> None:
        """See PartitionCounter."""
        self._survey.add(partition)

    def collect(self) -> Collected:
        """Yield the metrics."""
        survey = self._survey
        self._places.keep(survey.existing)
        survey.add_others()
        yield from (family.metric for family in survey.families.values())
        for name, value in survey.totals.items():
            yield make_metric(name, value)
        yield make_metric(f"{MANAGER}partitioncount", len(survey.existing))
        yield make_metric(f"{MANAGER}offlinereplicacount", self._observed.replicas.offline_count)
        yield from self._collect_reassigning()
        yield make_metric("kafka_server_replicafetchermanager_maxlag", survey.largest_lag, clientId=REPLICA_CLIENT)
        node = self._observed.node
        changes = InSyncCounts() if node is None else node.in_sync_counts
        yield make_metric(f"{MANAGER}isrshrinks", changes.shrinks)
        yield make_metric(f"{MANAGER}isrexpands", changes.expands)
        yield make_metric(f"{MANAGER}failedisrupdates", changes.failures)

    def _collect_reassigning(self) -> Collected:
        """Count by the image: a leader does not know which of its replicas are being added."""
        image, node_id, reassigning = self._observed.metadata.image, self._observed.config.node_id, 0
        for number, topic in enumerate([] if self._observed.node is None else list(image.topics.values()), 1):
            reassigning += sum(item.leader == node_id and item.is_reassigned for item in topic.partitions)
            if number % IN_A_TURN == 0:
                yield None
        yield make_metric(f"{MANAGER}reassigningpartitions", reassigning)


class _Survey:
    """One pass over the partitions."""

    def __init__(self, places: SeriesPlaces[tuple[str, int]]) -> None:
        self.families = {name: Family(name) for name in (*SUMMED, *SINGLE, *LED, FOLLOWER_LAG)}
        self.totals = dict.fromkeys((LEADERS, PRODUCER_IDS, *FLAGGED), 0)
        self.largest_lag = 0
        self.existing: set[tuple[str, int]] = set()
        self._places = places
        self._others = dict.fromkeys(SUMMED, 0)
        self._has_others = False

    def add(self, partition: Partition) -> None:
        """Add a partition to the totals, and to the series if it has a place."""
        key = partition.topic, partition.index
        self.existing.add(key)
        has_place = self._places.take(key)
        opened = partition.log
        sizes = opened.size_bytes, len(opened.segments)
        self.totals[PRODUCER_IDS] += len(opened.producer_state.producers)
        if has_place:
            values = (*sizes, opened.log_start_offset, opened.log_end_offset)
            self._add_values((*SUMMED, *SINGLE), values, partition)
        else:
            self._has_others = True
            for name, size in zip(SUMMED, sizes, strict=True):
                self._others[name] += size
        if partition.is_leader:
            self._add_led(partition, has_place)
        elif partition.state.leader_id >= 0:
            self.largest_lag = max(self.largest_lag, partition.follower.lag)
            if has_place:
                self.families[FOLLOWER_LAG].add(
                    partition.follower.lag, clientId=REPLICA_CLIENT, topic=partition.topic, partition=partition.index
                )

    def _add_led(self, partition: Partition, has_place: bool) -> None:
        leading = partition.state.leading
        assert leading is not None
        in_sync, replicas = len(leading.in_sync.committed), len(leading.followers) + 1
        least = leading.least_in_sync(partition.log.config.min_insync_replicas)
        flags = in_sync < replicas, in_sync < least, in_sync == least
        self.totals[LEADERS] += 1
        for name, is_set in zip(FLAGGED, flags, strict=True):
            self.totals[name] += is_set
        if has_place:
            unstable = partition.high_watermark.offset - partition.last_stable_offset
            self._add_values(LED, (in_sync, replicas, unstable, *flags), partition)

    def _add_values(self, names: tuple[str, ...], values: tuple[int, ...], partition: Partition) -> None:
        for name, value in zip(names, values, strict=True):
            self.families[name].add(int(value), topic=partition.topic, partition=partition.index)

    def add_others(self) -> None:
        """Add the sums of the partitions without a place."""
        if self._has_others:
            for name, value in self._others.items():
                self.families[name].add(value, topic=OTHER, partition=OTHER)
