"""Traffic control on one broker: it follows instances and brokers, and reports to the controller in a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kafkacompat.cluster.led_partitions import LedPartitions
from kafkacompat.cluster.traffic_reports import TrafficReports
from kafkacompat.config.instances import NO_LIMIT
from kafkacompat.tenancy.traffic.control import TrafficControl
from kafkacompat.tenancy.traffic_limits import TrafficLimits
from kafkacompat.timers import Clock, steady_ms

if TYPE_CHECKING:
    from kafkacompat.cluster.member import ClusterMember
    from kafkacompat.config import BrokerConfig
    from kafkacompat.metadata.image import ImageHolder, MetadataImage
    from kafkacompat.tenancy.registry import Instances
    from kafkacompat.upkeep.instance_storage import InstanceStorage


class StoredLimits:
    """What instances with limit.storage.bytes store on this broker; *find_storage* returns the accounts, once there are any."""

    def __init__(self, instances: Instances, find_storage: Callable[[], InstanceStorage | None]) -> None:
        self._instances = instances
        self._find_storage = find_storage
        self._limited: tuple[str, ...] = ()

    def update(self) -> None:
        """Follow a change of instances."""
        views = self._instances.by_name.items()
        self._limited = tuple(name for name, view in views if view.instance.int("limit.storage.bytes") != NO_LIMIT)

    @property
    def has_limits(self) -> bool:
        """See StoredReports."""
        return bool(self._limited)

    def measure(self) -> dict[str, int]:
        """See StoredReports."""
        storage = self._find_storage()
        known = {} if storage is None else storage.by_name
        return {
            name: found.account.stored_bytes
            for name in self._limited
            if (found := known.get(name)) is not None and found.partitions
        }

    def note_totals(self, totals: Mapping[str, int], reported: Mapping[str, int]) -> None:
        """See StoredReports."""
        storage = self._find_storage()
        for name, total_bytes in totals.items():
            account = None if storage is None else storage.find_account(name)
            if account is not None and name in reported:
                account.note_total(total_bytes, reported[name])


class BrokerTraffic:
    """Gives each instance's view its meter, ``traffic``. *member* is None on a single node, whose shares are whole limits."""

    def __init__(
        self,
        config: BrokerConfig,
        instances: Instances,
        metadata: ImageHolder,
        member: ClusterMember | None,
        find_storage: Callable[[], InstanceStorage | None],
        clock: Clock,
    ) -> None:
        interval_ms = config.int("kafkacompat.traffic.interval.ms")
        self._clock = clock
        self._instances = instances
        self._limits = TrafficLimits(instances)
        partitions = LedPartitions(lambda: metadata.image, instances, clock)
        self.control = TrafficControl(config.node_id, interval_ms, steady_ms(clock), partitions.find)
        self._stored = StoredLimits(instances, find_storage)
        self._reports: TrafficReports | None = None
        if member is not None:
            registration = member.registration
            self._reports = TrafficReports(
                config.node_id,
                lambda: registration.epoch,
                member.link,
                self.control,
                self._stored,
                partitions,
                clock,
                interval_ms,
            )
            metadata.watch(self._note_brokers)
        instances.watchers.append(self._update)
        self._update()

    def _note_brokers(self, image: MetadataImage) -> None:
        self.control.set_brokers(sorted(image.brokers), steady_ms(self._clock))

    def _update(self) -> None:
        """Follow a change of instances."""
        self.control.configure(self._limits.by_name, steady_ms(self._clock))
        for name, view in self._instances.by_name.items():
            view.traffic = self.control.by_name[name]
        self._stored.update()
        if self._reports is not None:
            self._reports.start()

    def stop(self) -> None:
        """Report no more."""
        if self._reports is not None:
            self._reports.stop()
