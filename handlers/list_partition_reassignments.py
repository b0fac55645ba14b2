"""ListPartitionReassignments (key 46), v0: which partitions are on their way to other nodes (KIP-455).

With one node there are none, whatever is asked for.
"""

from __future__ import annotations

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.wire.apis.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def handle_list_partition_reassignments(
    request: ListPartitionReassignmentsRequest, context: RequestContext, services: Services
) -> ListPartitionReassignmentsResponse:
    """List none."""
    return ListPartitionReassignmentsResponse(error_message=None)
