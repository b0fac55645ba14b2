"""DescribeClientQuotas (key 48): the quotas of users, clients and addresses (KIP-546)."""

from __future__ import annotations

from kafkacompat.wire.entities import NAME_FILTER, QUOTA_ENTITY, TEXT
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, float64, int8, int16, int32, string


class ComponentData(Struct):
    """A filter for one component of an entity."""

    entity_type: str = string()  # the type: user, client-id or ip
    match_type: int = int8()  # 0: the name in match, 1: the default entity, 2: any name or the default
    match: str | None = string(nullable="0+", entity=NAME_FILTER)  # the name to match; null unless match_type is 0


class DescribeClientQuotasRequest(Request, api_key=48, versions="0-1", flexible="1+"):
    """Describe the quotas of the entities that match all components."""

    components: list[ComponentData] = array(ComponentData)  # empty: every entity, unless strict is set
    strict: bool = boolean()  # excludes entities that have components of other types


class EntityData(Struct):
    """One component of an entity."""

    entity_type: str = string()  # the type: user, client-id or ip
    entity_name: str | None = string(
        nullable="0+", entity=QUOTA_ENTITY
    )  # null: the default entity, for names without a quota of their own


class ValueData(Struct):
    """One quota."""

    # producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate, connection_creation_rate
    key: str = string()
    value: float = float64()  # a rate per second; request_percentage: percent of one thread's time


class EntryData(Struct):
    """The quotas of one entity."""

    entity: list[EntityData] = array(EntityData)
    values: list[ValueData] = array(ValueData)


class DescribeClientQuotasResponse(Response, api_key=48, versions="0-1", flexible="1+"):
    """The matching entities."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", entity=TEXT)
    entries: list[EntryData] | None = array(EntryData, nullable="0+")  # null if the request fails
