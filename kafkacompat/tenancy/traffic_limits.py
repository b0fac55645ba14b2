"""The traffic limits of all instances, as traffic control takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from kafkacompat.tenancy.traffic.loans import InstanceLimits

if TYPE_CHECKING:
    from kafkacompat.config.instances import Instance
    from kafkacompat.tenancy.registry import Instances
    from kafkacompat.tenancy.tenant_view import TenantView


class TrafficLimits:
    """``by_name`` follows the instances."""

    def __init__(self, instances: Instances) -> None:
        self._instances = instances
        self.by_name: dict[str, InstanceLimits] = {}
        self._views: dict[str, TenantView] = {}
        instances.watchers.append(self.update)
        self.update()

    def update(self) -> None:
        """Read the limits of the instances that have changed."""
        views, known = self._instances.by_name, self._views
        self.by_name = {
            name: self.by_name[name] if known.get(name) is view else read_limits(view.instance)
            for name, view in views.items()
        }
        self._views = views


_known: WeakKeyDictionary[Instance, InstanceLimits] = WeakKeyDictionary()
"""Those of each instance, so that a change of one of a thousand reads no others anew."""


def read_limits(instance: Instance) -> InstanceLimits:
    """Return the limits of one instance."""
    limits = _known.get(instance)
    if limits is None:
        limits = _known[instance] = _parse_limits(instance)
    return limits


def _parse_limits(instance: Instance) -> InstanceLimits:
    return InstanceLimits(
        instance.int("quota.produce.bytes.per.second"),
        instance.int("quota.fetch.bytes.per.second"),
        instance.string("traffic.algorithm"),
    )
