"""The brokers that a client can reach through its own listener, and the partitions' leaders among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kafkacompat.config.broker_groups import read_broker_groups
from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.metadata.advertised import find_advertised_address
from kafkacompat.metadata.image import NO_LEADER, BrokerImage, MetadataImage, PartitionImage
from kafkacompat.tenancy.placement import list_visible_brokers
from kafkacompat.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kafkacompat.tenancy.tenant_view import TenantView


class ReachableBroker(NamedTuple):
    """A broker with its address for the client."""

    node_id: int
    host: str
    port: int
    rack: str | None


class ClusterSight:
    """The brokers as one client sees them; ``reachable`` holds them by their ids.

    A broker of a cluster without an endpoint on the client's listener is left out. A single node is always reachable.
    """

    def __init__(self, context: RequestContext, services: Services) -> None:
        self.image: MetadataImage = services.metadata.image
        self.reachable: Mapping[int, ReachableBroker] = {
            broker.node_id: broker
            for broker in (find_broker(image, context, services) for image in _list_visible(context, services))
            if broker is not None
        }
        self._is_of_tenant = context.tenant is not None

    @property
    def controller_id(self) -> int:
        """The controller; a client of an instance that does not see it sees another broker, which forwards to it."""
        controller_id = self.image.controller_id
        if self._is_of_tenant and controller_id not in self.reachable:
            return min(self.reachable, default=controller_id)
        return controller_id

    def find_leader(self, partition: PartitionImage) -> tuple[int, ErrorCode]:
        """Return a partition's leader for the client, or NO_LEADER and why there is none."""
        leader = partition.leader
        if leader in self.reachable:
            return leader, ErrorCode.NONE
        is_alive = leader in self.image.brokers
        return NO_LEADER, ErrorCode.LISTENER_NOT_FOUND if is_alive else ErrorCode.LEADER_NOT_AVAILABLE

    def list_offline(self, partition: PartitionImage) -> list[int]:
        """List the replicas whose broker is down or whose log directory has failed."""
        brokers = self.image.brokers
        return [node for node in partition.replicas if node not in brokers or node in partition.offline_replicas]


def _list_visible(context: RequestContext, services: Services) -> Iterable[BrokerImage]:
    """List the brokers that a client may know of: the client of an instance sees those of the instance."""
    image, tenant = services.metadata.image, context.tenant
    if tenant is None:
        return image.brokers.values()
    groups = read_broker_groups(services.effective.config)
    visible = list_visible_brokers(tenant, services.instances, image, groups)
    return [broker for node_id, broker in image.brokers.items() if node_id in visible]


def find_broker(broker: BrokerImage, context: RequestContext, services: Services) -> ReachableBroker | None:
    """Return a broker with its address for the client; None for another one without an endpoint on the client's listener."""
    if context.tenant is not None:
        return _find_for_tenant(broker, context.tenant, context, services)
    if broker.node_id != services.node_id and context.peer.listener_name not in broker.endpoints:
        return None
    return ReachableBroker(broker.node_id, *find_advertised_address(broker, context.peer), broker.rack)


def _find_for_tenant(
    broker: BrokerImage, tenant: TenantView, context: RequestContext, services: Services
) -> ReachableBroker | None:
    # A broker without instances does not pay for them.
    from kafkacompat.tenancy.addresses import find_tenant_address

    is_here = broker.node_id == services.node_id
    address = find_tenant_address(broker, tenant.instance, context.peer, is_here=is_here)
    return None if address is None else ReachableBroker(broker.node_id, *address, broker.rack)
