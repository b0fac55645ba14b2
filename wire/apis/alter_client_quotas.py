"""AlterClientQuotas (key 49): change the quotas of users, clients and addresses (KIP-546)."""

from __future__ import annotations

from kafkacompat.wire.entities import QUOTA_ENTITY, TEXT
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, float64, int16, int32, string


class EntityData(Struct):
    """One component of an entity."""

    entity_type: str = string()  # the type: user, client-id or ip
    entity_name: str | None = string(
        nullable="0+", entity=QUOTA_ENTITY
    )  # null: the default entity, for names without a quota of their own


class OpData(Struct):
    """The change to one quota."""

    key: str = string()  # the name of the quota, as in DescribeClientQuotas
    value: float = float64()  # the new value; ignored if remove is set
    remove: bool = boolean()  # true: remove the quota, false: set it


class EntryData(Struct):
    """The changes to one entity."""

    entity: list[EntityData] = array(EntityData)
    ops: list[OpData] = array(OpData)


class AlterClientQuotasRequest(Request, api_key=49, versions="0-1", flexible="1+"):
    """Change the given quotas."""

    entries: list[EntryData] = array(EntryData)
    validate_only: bool = boolean()


class EntryResult(Struct):
    """The outcome for one entity."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+", entity=TEXT)
    entity: list[EntityData] = array(EntityData)


class AlterClientQuotasResponse(Response, api_key=49, versions="0-1", flexible="1+"):
    """The outcome for each entity."""

    throttle_time_ms: int = int32()
    entries: list[EntryResult] = array(EntryResult)
