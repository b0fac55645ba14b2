"""StopReplica (key 5), v0-4: the controller takes replicas away from this broker, and may delete their logs.

v1     partitions by topic; the broker's epoch
v2     flexible
v3     leader epochs; each partition says whether its log is deleted (KIP-570)
v4     KRaft controllers during a migration (KIP-866), which are not supported
"""

from __future__ import annotations

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.wire.apis.stop_replica import StopReplicaRequest, StopReplicaResponse


def handle_stop_replica(
    request: StopReplicaRequest, context: RequestContext, services: Services
) -> Pending[StopReplicaResponse]:
    """Answer when the replicas are stopped; the controller's next request waits until then."""
    return Pending(services.require_cluster().stop_replicas(request), in_order=True)
