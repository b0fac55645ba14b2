"""BrokerRegistration (key 62): a starting broker registers with the controller."""

from __future__ import annotations

from kafkacompat.wire.entities import BROKER, CLUSTER
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int16, int32, int64, string, uint16, uuid


class Listener(Struct):
    """An address of the broker."""

    name: str = string()
    host: str = string()
    port: int = uint16()
    security_protocol: int = int16()  # 0: PLAINTEXT, 1: SSL, 2: SASL_PLAINTEXT, 3: SASL_SSL


class Feature(Struct):
    """The levels of one feature that the broker supports."""

    name: str = string()
    min_supported_version: int = int16()
    max_supported_version: int = int16()


class BrokerRegistrationRequest(Request, api_key=62, versions="0-4", flexible="0+"):
    """Register the broker, which stays fenced at first."""

    broker_id: int = int32(entity=BROKER)
    cluster_id: str = string(entity=CLUSTER)
    incarnation_id: bytes = uuid()  # a new id for each start of the process
    listeners: list[Listener] = array(Listener)
    features: list[Feature] = array(Feature)
    rack: str | None = string(nullable="0+")  # null if there is none
    is_migrating_zk_broker: bool = boolean(versions="1+")  # the broker still belongs to a ZooKeeper cluster
    log_dirs: list[bytes] = array(uuid(), versions="2+")  # the ids of the broker's online log directories
    # the broker epoch before the last clean shutdown; -1 after an unclean one
    previous_broker_epoch: int = int64(versions="3+", default=-1)


class BrokerRegistrationResponse(Response, api_key=62, versions="0-4", flexible="0+"):
    """The outcome of the registration."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    broker_epoch: int = int64(default=-1)  # the epoch of this registration; -1 if the request fails
