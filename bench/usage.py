"""The cost of a load for the broker: CPU time and memory, read from its process."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bench.row import Samples
from compat_tests.brokers import Broker
from compat_tests.clusters import Cluster

if TYPE_CHECKING:
    from typing_extensions import Self


class Usage:
    """Measures a ``with`` block on one broker, or on all of a cluster."""

    def __init__(self, broker: Broker | Cluster) -> None:
        self.broker = broker
        self.seconds = 0.0
        self.cpu_seconds = 0.0

    def __enter__(self) -> Self:
        self._cpu = self.broker.cpu_seconds()
        self._begun = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.monotonic() - self._begun
        self.cpu_seconds = self.broker.cpu_seconds() - self._cpu

    def samples(self, records: int, size_bytes: int, seconds: float | None = None) -> Samples:
        """Return the figures of the block; *seconds* replaces its duration if the load measured its own."""
        elapsed = seconds or self.seconds
        return {
            "records/s": records / elapsed,
            "MB/s": size_bytes / elapsed / 1e6,
            "broker CPU s per million records": self.cpu_seconds / records * 1e6,
            "resident MB": self.broker.resident_bytes() / 1e6,
        }


class ClusterUsage(Usage):
    """Measures a ``with`` block on a cluster, and ZooKeeper beside it; Kafka's controllers are in the processes of its brokers."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._cluster = cluster
        self._zookeeper_cpu_seconds = 0.0

    def __enter__(self) -> Self:
        self._zookeeper_cpu = self._cluster.zookeeper_cpu_seconds()
        return super().__enter__()

    def __exit__(self, *details: object) -> None:
        super().__exit__(*details)
        self._zookeeper_cpu_seconds = self._cluster.zookeeper_cpu_seconds() - self._zookeeper_cpu

    def samples(self, records: int, size_bytes: int, seconds: float | None = None) -> Samples:
        """Return the sums over the brokers, and ZooKeeper's share, which they leave out."""
        return {
            **super().samples(records, size_bytes, seconds),
            "ZooKeeper CPU s per million records": self._zookeeper_cpu_seconds / records * 1e6,
            "ZooKeeper resident MB": self._cluster.zookeeper_resident_bytes() / 1e6,
        }
