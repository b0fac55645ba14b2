"""The traffic limits of all instances, as traffic control takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacompat.tenancy.traffic.loans import InstanceLimits

if TYPE_CHECKING:
    from kafkacompat.config.instances import Instance
    from kafkacompat.tenancy.registry import Instances


class TrafficLimits:
    """``by_name`` follows the instances."""

    def __init__(self, instances: Instances) -> None:
        self._instances = instances
        self.by_name: dict[str, InstanceLimits] = {}
        instances.watchers.append(self.update)
        self.update()

    def update(self) -> None:
        """Read the limits of all instances."""
        self.by_name = {name: read_limits(view.instance) for name, view in self._instances.by_name.items()}


def read_limits(instance: Instance) -> InstanceLimits:
    """Return the limits of one instance."""
    return InstanceLimits(
        instance.int("quota.produce.bytes.per.second"),
        instance.int("quota.fetch.bytes.per.second"),
        instance.string("traffic.algorithm"),
    )
