"""DescribeCluster."""

from __future__ import annotations

import pytest

from kafkacompat.wire.apis.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.primitives import MIN_INT32
from tests.handlers.admin_node import AdminNode


@pytest.mark.parametrize("version", [0, 1, 2])
def test_brokers(version: int) -> None:
    response = AdminNode(broker_rack="r").ask(DescribeClusterRequest(), DescribeClusterResponse, version)
    (broker,) = response.brokers
    assert (broker.broker_id, broker.host, broker.port, broker.rack) == (1, "10.0.0.5", 9092, "r")
    assert (response.cluster_id, response.controller_id, response.endpoint_type) == ("cluster-1", 1, 1)
    assert response.cluster_authorized_operations == MIN_INT32


def test_authorized_operations() -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert AdminNode().ask(request, DescribeClusterResponse, 2).cluster_authorized_operations == 8096


@pytest.mark.parametrize(
    ("endpoint_type", "code"), [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (5, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)]
)
def test_other_endpoints_are_refused(endpoint_type: int, code: ErrorCode) -> None:
    request = DescribeClusterRequest(endpoint_type=endpoint_type)
    response = AdminNode().ask(request, DescribeClusterResponse, 1)
    assert response.error_code == code and response.error_message and response.brokers == []
