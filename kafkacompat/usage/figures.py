"""The present figures of instances on one broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kafkacompat.config.instances import Instance
    from kafkacompat.tenancy.registry import Instances
    from kafkacompat.upkeep.instance_storage import InstanceStorage

CountOfInstance = Callable[[str], int]


def count_none(_: str) -> int:
    """Return 0, as where nothing counts."""
    return 0


class InstanceUsage(NamedTuple):
    """What one instance uses of one broker.

    The first four grow from the broker's start on; ``throttled_ms`` is the sum of throttle times. ``stored_bytes`` are those that
    count on this broker, and ``total_stored_bytes`` those on all brokers as far as this one knows.
    """

    produced_bytes: int
    produced_records: int
    fetched_bytes: int
    throttled_ms: int
    stored_bytes: int
    total_stored_bytes: int
    is_storage_full: bool
    topics: int
    partitions: int
    led_partitions: int
    groups: int
    connections: int


class UsageFigures:
    """Reads the figures. ``count_connections`` counts those of an instance, which the broker's server knows."""

    def __init__(self, instances: Instances, storage: InstanceStorage, count_groups: Callable[[Instance], int]) -> None:
        self._instances = instances
        self._storage = storage
        self._count_groups = count_groups
        self.count_connections: CountOfInstance = count_none

    def list_names(self) -> list[str]:
        """List the instances, in order."""
        return sorted(self._instances.by_name)

    def read(self, name: str) -> InstanceUsage | None:
        """Return the figures of an instance; None if there is no such instance."""
        view = self._instances.by_name.get(name)
        stored = self._storage.by_name.get(name)
        if view is None or stored is None:
            return None
        passed, account = stored.measure(), stored.account
        return InstanceUsage(
            produced_bytes=passed.produced_bytes,
            produced_records=passed.produced_records,
            fetched_bytes=passed.fetched_bytes,
            throttled_ms=0 if view.traffic is None else view.traffic.throttled_ms,
            stored_bytes=account.stored_bytes,
            total_stored_bytes=account.total_bytes,
            is_storage_full=account.is_full,
            topics=stored.count_topics(),
            partitions=len(stored.partitions),
            led_partitions=stored.count_led(),
            groups=self._count_groups(view.instance),
            connections=self.count_connections(name),
        )

    def describe(self, name: str) -> dict[str, int | bool] | None:
        """Return the figures as a dictionary by their names; None if there is no such instance."""
        usage = self.read(name)
        return None if usage is None else usage._asdict()
