"""Log directories, and what the broker does with logs in the background: group commit, compaction, scrub."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kafkacompat.monitoring.collectors import Collected
from kafkacompat.monitoring.table import Family, make_metric

if TYPE_CHECKING:
    from kafkacompat.monitoring.observed import Observed
    from kafkacompat.partitions.partition import Partition

MANAGER = "kafka_log_logmanager_"


class LogCollector:
    """Collects the state of the log directories and of their upkeep."""

    def __init__(self, observed: Observed) -> None:
        self._observed = observed
        self._damaged = 0

    def begin_pass(self) -> None:
        """See PartitionCounter."""
        self._damaged = 0

    def add_partition(self, partition: Partition) -> None:
        """See PartitionCounter."""
        self._damaged += sum(len(segment.corrupt) for segment in partition.log.segments if segment.corrupt)

    def collect(self) -> Collected:
        """Yield the metrics."""
        yield from self._collect_directories()
        yield from self._collect_compaction()
        scrubber = self._observed.scrubber
        yield make_metric("kafkacompat_scrub_read_bytes", scrubber.read_bytes)
        yield make_metric("kafkacompat_scrub_rounds", scrubber.rounds)
        yield make_metric("kafkacompat_damaged_batches", self._damaged)

    def _collect_directories(self) -> Collected:
        names = (f"{MANAGER}logdirectoryoffline", "kafkacompat_log_directory_full", "kafkacompat_group_commit_rounds")
        offline, full, rounds = map(Family, names)
        seconds = Family("kafkacompat_group_commit_seconds")
        for directory in self._observed.directories:
            offline.add(directory.offline, logDirectory=directory.path)
            full.add(directory.space.is_full, logDirectory=directory.path)
            rounds.add(directory.commit.rounds, logDirectory=directory.path)
            seconds.add(directory.commit.busy_s, logDirectory=directory.path)
        failed = sum(directory.offline for directory in self._observed.directories)
        yield make_metric(f"{MANAGER}offlinelogdirectorycount", failed)
        yield from (family.metric for family in (offline, full, rounds, seconds))

    def _collect_compaction(self) -> Collected:
        cleaner = self._observed.cleaner
        counts = cleaner.counts
        yield make_metric("kafkacompat_compactions", counts.runs)
        yield make_metric("kafkacompat_compactions_failed", counts.failures)
        yield make_metric("kafkacompat_compactions_under_way", cleaner.under_way)
        yield make_metric("kafkacompat_compaction_read_bytes", counts.read_bytes)
        yield make_metric("kafkacompat_compaction_written_bytes", counts.written_bytes)
        yield make_metric("kafkacompat_compaction_removed_records", counts.removed_records)
        uncleanable = Family("kafka_log_logcleanermanager_uncleanable_partitions_count")
        find_home = self._observed.directories.find_home
        homes = Counter(find_home((partition.topic, partition.index)) for partition in list(cleaner.uncleanable))
        for directory in self._observed.directories:
            uncleanable.add(homes[directory], logDirectory=directory.path)
        yield uncleanable.metric
