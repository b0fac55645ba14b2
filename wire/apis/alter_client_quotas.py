"""AlterClientQuotas (key 49): DOC"""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, float64, int16, int32, string


class EntityData(Struct):
    """DOC"""

    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")


class OpData(Struct):
    """DOC"""

    key: str = string()
    value: float = float64()
    remove: bool = boolean()


class EntryData(Struct):
    """DOC"""

    entity: list[EntityData] = array(EntityData)
    ops: list[OpData] = array(OpData)


class AlterClientQuotasRequest(Request, api_key=49, versions="0-1", flexible="1+"):
    """DOC"""

    entries: list[EntryData] = array(EntryData)
    validate_only: bool = boolean()


class EntityDataResponse(Struct):
    """DOC"""

    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")


class EntryDataResponse(Struct):
    """DOC"""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entity: list[EntityDataResponse] = array(EntityDataResponse)


class AlterClientQuotasResponse(Response, api_key=49, versions="0-1", flexible="1+"):
    """DOC"""

    throttle_time_ms: int = int32()
    entries: list[EntryDataResponse] = array(EntryDataResponse)
