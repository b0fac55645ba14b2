"""AlterClientQuotas (key 49): change how much users, clients and addresses may use (KIP-546)."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, float64, int16, int32, string


class EntityData(Struct):
    """One part of an entity."""

    entity_type: str = string()  # user, client-id or ip
    entity_name: str | None = string(nullable="0+")  # null: the default, for those without a quota of their own


class OpData(Struct):
    """The change to one quota."""

    key: str = string()  # as in DescribeClientQuotas
    value: float = float64()  # does not count when removing
    remove: bool = boolean()  # else set it


class EntryData(Struct):
    """The changes to one entity."""

    entity: list[EntityData] = array(EntityData)
    ops: list[OpData] = array(OpData)


class AlterClientQuotasRequest(Request, api_key=49, versions="0-1", flexible="1+"):
    """Change these quotas."""

    entries: list[EntryData] = array(EntryData)
    validate_only: bool = boolean()


class EntryResult(Struct):
    """The outcome for one entity."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entity: list[EntityData] = array(EntityData)


class AlterClientQuotasResponse(Response, api_key=49, versions="0-1", flexible="1+"):
    """Which entities were changed."""

    throttle_time_ms: int = int32()
    entries: list[EntryResult] = array(EntryResult)
