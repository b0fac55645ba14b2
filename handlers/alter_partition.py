"""AlterPartition (key 56), v0-3: a request of a broker to the controller."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.wire.apis.alter_partition import AlterPartitionRequest, AlterPartitionResponse


def handle_alter_partition(
    request: AlterPartitionRequest, context: RequestContext, services: Services
) -> Pending[AlterPartitionResponse]:
    """Let the controller answer."""
    assert services.cluster is not None
    return Pending(
        Deferred.fromCoroutine(services.cluster.alter_partition(request, context.api_version)), in_order=True
    )
