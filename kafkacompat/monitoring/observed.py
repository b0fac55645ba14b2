"""What the collectors see of a broker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kafkacompat.cluster_node import ClusterNode
    from kafkacompat.config import BrokerConfig
    from kafkacompat.coordinators import Coordinators
    from kafkacompat.metadata.image import ImageHolder
    from kafkacompat.partitions.directories import Directories
    from kafkacompat.partitions.replica_manager import ReplicaManager
    from kafkacompat.quotas.client_quotas import ClientQuotas
    from kafkacompat.server.listener import KafkaServer
    from kafkacompat.timers import Clock
    from kafkacompat.upkeep.cleaning import LogCleaner
    from kafkacompat.upkeep.scrubbing import LogScrubber
    from kafkacompat.usage.figures import UsageFigures


class WorkQueue(Protocol):
    """Threads or processes that work for the broker."""

    @property
    def pending(self) -> int:
        """How many works wait or run."""


@dataclass(frozen=True, slots=True)
class Observed:
    """The services of a broker that has opened its logs; ``node`` is None on a single node.

    ``find_instance_usage`` returns the usage of instances; None as long as there was none.
    """

    config: BrokerConfig
    clock: Clock
    server: KafkaServer
    metadata: ImageHolder
    directories: Directories
    replicas: ReplicaManager
    coordinators: Coordinators
    cleaner: LogCleaner
    scrubber: LogScrubber
    workers: Mapping[str, WorkQueue]
    disks: Mapping[str, WorkQueue]
    node: ClusterNode | None
    quotas: ClientQuotas
    find_instance_usage: Callable[[], UsageFigures | None]
