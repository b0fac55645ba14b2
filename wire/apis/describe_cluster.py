"""DescribeCluster (key 60): the cluster id, the controller and the brokers."""

from __future__ import annotations

from kafkacompat.wire.entities import BROKER, CLUSTER, TEXT
from kafkacompat.wire.primitives import MIN_INT32
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int8, int16, int32, string


class DescribeClusterRequest(Request, api_key=60, versions="0-2", flexible="0+"):
    """Request the description of the cluster."""

    # adds the operations that the client may perform on the cluster (KIP-430)
    include_cluster_authorized_operations: bool = boolean()
    endpoint_type: int = int8(versions="1+", default=1)  # 1: brokers, 2: controllers
    # includes brokers that are registered but not live (KIP-1073)
    include_fenced_brokers: bool = boolean(versions="2+")


class DescribeClusterBroker(Struct):
    """One broker with its address on the listener that the client uses."""

    broker_id: int = int32(entity=BROKER)
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)
    is_fenced: bool = boolean(versions="2+")  # the broker is registered but not live


class DescribeClusterResponse(Response, api_key=60, versions="0-2", flexible="0+"):
    """The cluster metadata as the broker knows it."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None, entity=TEXT)
    endpoint_type: int = int8(versions="1+", default=1)  # the value from the request
    cluster_id: str = string(entity=CLUSTER)
    controller_id: int = int32(default=-1, entity=BROKER)  # -1 if there is no controller
    brokers: list[DescribeClusterBroker] = array(DescribeClusterBroker)
    # a bit for each AclOperation code; the default if the client did not request it
    cluster_authorized_operations: int = int32(default=MIN_INT32)
