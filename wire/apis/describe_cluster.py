"""DescribeCluster (key 60): the cluster id, the controller and the brokers."""

from __future__ import annotations

from kafkacompat.wire.primitives import MIN_INT32
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int8, int16, int32, string


class DescribeClusterRequest(Request, api_key=60, versions="0-2", flexible="0+"):
    """Who makes up this cluster?"""

    include_cluster_authorized_operations: bool = boolean()  # what the client may do with the cluster (KIP-430)
    endpoint_type: int = int8(versions="1+", default=1)  # 1: brokers, 2: controllers
    include_fenced_brokers: bool = boolean(versions="2+")  # also those that are registered but not live (KIP-1073)


class DescribeClusterBroker(Struct):
    """One broker, at the address of the listener the client came through."""

    broker_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)
    is_fenced: bool = boolean(versions="2+")  # registered, but not live


class DescribeClusterResponse(Response, api_key=60, versions="0-2", flexible="0+"):
    """The cluster as the broker sees it."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    endpoint_type: int = int8(versions="1+", default=1)  # as in the request
    cluster_id: str = string()
    controller_id: int = int32(default=-1)  # -1: none
    brokers: list[DescribeClusterBroker] = array(DescribeClusterBroker)
    # bits of AclOperation codes; the default means: not asked for
    cluster_authorized_operations: int = int32(default=MIN_INT32)
