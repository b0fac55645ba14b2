"""ControllerRegistration (key 70): a controller registers with the active controller (KIP-919)."""

from __future__ import annotations

from kafkacompat.wire.entities import BROKER, TEXT
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int16, int32, string, uint16, uuid


class Listener(Struct):
    """An address of the controller."""

    name: str = string()
    host: str = string()
    port: int = uint16()
    security_protocol: int = int16()  # 0: PLAINTEXT, 1: SSL, 2: SASL_PLAINTEXT, 3: SASL_SSL


class Feature(Struct):
    """The levels of one feature that the controller supports."""

    name: str = string()
    min_supported_version: int = int16()
    max_supported_version: int = int16()


class ControllerRegistrationRequest(Request, api_key=70, versions="0", flexible="0+"):
    """Register the controller."""

    controller_id: int = int32(entity=BROKER)  # the node id of the controller
    incarnation_id: bytes = uuid()  # a new id for each start of the process
    zk_migration_ready: bool = boolean()  # the controller is configured for a migration from ZooKeeper
    listeners: list[Listener] = array(Listener)
    features: list[Feature] = array(Feature)


class ControllerRegistrationResponse(Response, api_key=70, versions="0", flexible="0+"):
    """The outcome of the registration."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", entity=TEXT)
