"""AlterPartition (key 56), v0-3: a leader asks the controller to change in-sync sets (KIP-497).

v1     partitions that recover from an unclean election (KIP-704)
v2     topic ids in place of names
v3     the epochs of the in-sync brokers (KIP-903)
"""

from __future__ import annotations

from twisted.internet.defer import Deferred

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.wire.apis.alter_partition import AlterPartitionRequest, AlterPartitionResponse


def handle_alter_partition(
    request: AlterPartitionRequest, context: RequestContext, services: Services
) -> Pending[AlterPartitionResponse]:
    """Answer with the state of each partition, or its error."""
    return Pending(
        Deferred.fromCoroutine(services.require_cluster().answers.alter_partition(request, context.api_version))
    )
