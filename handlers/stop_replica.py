"""StopReplica (key 5), v0-4: an order of the controller."""

from __future__ import annotations

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.wire.apis.stop_replica import StopReplicaRequest, StopReplicaResponse


def handle_stop_replica(
    request: StopReplicaRequest, context: RequestContext, services: Services
) -> Pending[StopReplicaResponse]:
    """Carry the order out."""
    assert services.cluster is not None
    return Pending(services.cluster.stop_replicas(request), in_order=True)
