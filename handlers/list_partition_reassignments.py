"""ListPartitionReassignments (key 46), v0: the partitions that move to other nodes (KIP-455).

On a single node there are none.
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
    """Return an empty list."""
    return ListPartitionReassignmentsResponse(error_message=None)
