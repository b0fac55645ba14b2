"""Traffic control on one broker: it follows instances and brokers, and reports to the controller in a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafkacompat.cluster.led_partitions import LedPartitions
from kafkacompat.cluster.traffic_reports import TrafficReports
from kafkacompat.tenancy.traffic.control import TrafficControl
from kafkacompat.tenancy.traffic_limits import read_limits
from kafkacompat.timers import Clock, steady_ms

if TYPE_CHECKING:
    from kafkacompat.cluster.member import ClusterMember
    from kafkacompat.config import BrokerConfig
    from kafkacompat.metadata.image import ImageHolder, MetadataImage
    from kafkacompat.tenancy.registry import Instances


class BrokerTraffic:
    """Gives each instance's view its meter, ``traffic``; `update` follows changes of instances. *member* is None on a single node, whose shares are whole limits."""

    def __init__(
        self,
        config: BrokerConfig,
        instances: Instances,
        metadata: ImageHolder,
        member: ClusterMember | None,
        clock: Clock,
    ) -> None:
        interval_ms = config.int("kafkacompat.traffic.interval.ms")
        self._clock = clock
        self._instances = instances
        partitions = LedPartitions(lambda: metadata.image, instances, clock)
        self.control = TrafficControl(config.node_id, interval_ms, steady_ms(clock), partitions.find)
        self._reports: TrafficReports | None = None
        if member is not None:
            registration = member.registration
            self._reports = TrafficReports(
                config.node_id, lambda: registration.epoch, member.link, self.control, partitions, clock, interval_ms
            )
            metadata.watch(self._note_brokers)
        self.update(instances.by_name)

    def _note_brokers(self, image: MetadataImage) -> None:
        self.control.set_brokers(sorted(image.brokers), steady_ms(self._clock))

    def update(self, changed: Iterable[str]) -> None:
        """Follow a change of instances, by their names."""
        for name in changed:
            view = self._instances.by_name.get(name)
            if view is not None:
                view.traffic = self.control.set_limits(name, read_limits(view.instance), steady_ms(self._clock))
            elif name in self.control.by_name:
                self.control.remove(name)
        if self._reports is not None:
            self._reports.start()

    def stop(self) -> None:
        """Report no more."""
        if self._reports is not None:
            self._reports.stop()
