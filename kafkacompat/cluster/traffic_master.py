"""The traffic master on the controller's broker: it answers ReportTraffic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from kafkacompat.cluster.led_partitions import LedPartitions
from kafkacompat.tenancy.registry import Instances
from kafkacompat.tenancy.traffic.master import FlowShare, FlowUsage, TrafficMaster
from kafkacompat.tenancy.traffic.shared import Usage
from kafkacompat.tenancy.traffic_limits import TrafficLimits
from kafkacompat.timers import Clock, steady_ms, take_steps
from kafkacompat.wire.apis.report_traffic import DividedTraffic, ReportTrafficRequest, ReportTrafficResponse
from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkacompat.metadata.image import MetadataImage


class TrafficMasterRole:
    """Divides the traffic by the controller's own image. It knows nothing at first: brokers report what they have."""

    def __init__(self, find_image: Callable[[], MetadataImage], clock: Clock, interval_ms: int) -> None:
        self._find_image = find_image
        self._clock = clock
        self._instances = Instances()
        self._limits = TrafficLimits(self._instances)
        self._partitions = LedPartitions(find_image, self._instances, clock)
        self._master = TrafficMaster(interval_ms, steady_ms(clock), self._partitions.find)

    async def answer(self, request: ReportTrafficRequest) -> ReportTrafficResponse:
        """Return the broker's shares; raises KafkaError STALE_BROKER_EPOCH if it is not alive, or has another epoch."""
        image = self._find_image()
        broker = image.brokers.get(request.broker_id)
        if broker is None or broker.epoch != request.broker_epoch:
            raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, f"broker {request.broker_id} is not alive in this epoch")
        self._instances.update(image)
        shares: list[FlowShare] = []
        await take_steps(self._clock, self._divide(request, sorted(image.brokers), shares))
        return ReportTrafficResponse(
            shares=[
                DividedTraffic(instance=name, direction=direction, share=share) for name, direction, share in shares
            ]
        )

    def _divide(self, request: ReportTrafficRequest, brokers: Sequence[int], shares: list[FlowShare]) -> Iterator[None]:
        yield from self._partitions.count()
        usages = [
            FlowUsage(entry.instance, entry.direction, Usage(entry.used, entry.held_back, entry.share))
            for entry in request.traffic
        ]
        yield from self._master.answer(
            request.broker_id, usages, brokers, self._limits.by_name, steady_ms(self._clock), shares
        )
