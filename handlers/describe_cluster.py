"""DescribeCluster (key 60), v0-2: the cluster's id, its controller and its brokers.

v1     the client requests brokers or controllers (KIP-919); clients cannot reach controllers here
v2     fenced brokers on request; there are none
"""

from __future__ import annotations

from kafkacompat.handlers.authorized_operations import CLUSTER_OPERATIONS
from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.handlers.endpoints import ClusterSight
from kafkacompat.wire.apis.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kafkacompat.wire.errors import ErrorCode

BROKERS = 1
CONTROLLERS = 2


def handle_describe_cluster(
    request: DescribeClusterRequest, context: RequestContext, services: Services
) -> DescribeClusterResponse:
    """Describe the brokers; reject requests for other endpoints."""
    if request.endpoint_type == CONTROLLERS:
        return _build_error(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE, "this listener belongs to a broker and describes brokers only"
        )
    if request.endpoint_type != BROKERS:
        reason = f"there are no endpoints of type {request.endpoint_type}"
        return _build_error(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, reason)
    sight = ClusterSight(context, services)
    response = DescribeClusterResponse(
        cluster_id=sight.image.cluster_id, controller_id=sight.controller_id, endpoint_type=BROKERS
    )
    response.brokers = [
        DescribeClusterBroker(broker_id=broker.node_id, host=broker.host, port=broker.port, rack=broker.rack)
        for broker in sight.reachable.values()
    ]
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


def _build_error(code: ErrorCode, message: str) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=code, error_message=message)
