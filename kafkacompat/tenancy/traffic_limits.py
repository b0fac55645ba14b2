"""The traffic limits of instances, as traffic control takes them."""

from __future__ import annotations

from collections.abc import Iterable
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
        instances.watchers.append(self._update)
        self._update(instances.by_name)

    def _update(self, changed: Iterable[str]) -> None:
        for name in changed:
            view = self._instances.by_name.get(name)
            if view is None:
                self.by_name.pop(name, None)
            else:
                self.by_name[name] = read_limits(view.instance)


def read_limits(instance: Instance) -> InstanceLimits:
    """Return the limits of one instance."""
    return InstanceLimits(
        instance.int("quota.produce.bytes.per.second"),
        instance.int("quota.fetch.bytes.per.second"),
        instance.string("traffic.algorithm"),
    )
