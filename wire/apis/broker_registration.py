"""BrokerRegistration (key 62): a broker that starts makes itself known to the controller."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int16, int32, int64, string, uint16, uuid


class Listener(Struct):
    """An address of the broker."""

    name: str = string()
    host: str = string()
    port: int = uint16()
    security_protocol: int = int16()  # 0: PLAINTEXT, 1: SSL, 2: SASL_PLAINTEXT, 3: SASL_SSL


class Feature(Struct):
    """The levels of one feature that the broker knows."""

    name: str = string()
    min_supported_version: int = int16()
    max_supported_version: int = int16()


class BrokerRegistrationRequest(Request, api_key=62, versions="0-4", flexible="0+"):
    """Register this broker, fenced at first."""

    broker_id: int = int32()
    cluster_id: str = string()
    incarnation_id: bytes = uuid()  # a new one each time the process starts
    listeners: list[Listener] = array(Listener)
    features: list[Feature] = array(Feature)
    rack: str | None = string(nullable="0+")  # null: none
    is_migrating_zk_broker: bool = boolean(versions="1+")  # is run by ZooKeeper so far
    log_dirs: list[bytes] = array(uuid(), versions="2+")  # the ids of its log directories that are online
    # the one it had when it shut down properly; -1: it did not
    previous_broker_epoch: int = int64(versions="3+", default=-1)


class BrokerRegistrationResponse(Response, api_key=62, versions="0-4", flexible="0+"):
    """Whether it is registered."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    broker_epoch: int = int64(default=-1)  # of this registration; -1 with an error
