"""ListGroups (key 16): the groups that a broker coordinates."""

from __future__ import annotations

from kafkacompat.wire.entities import GROUP
from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, string


class ListGroupsRequest(Request, api_key=16, versions="0-5", flexible="3+"):
    """List the groups, optionally only those in given states and of given types."""

    states_filter: list[str] = array(string(), versions="4+")  # empty: no filter
    types_filter: list[str] = array(string(), versions="5+")  # empty: no filter


class ListedGroup(Struct):
    """One group."""

    group_id: str = string(entity=GROUP)
    protocol_type: str = string()  # consumer, connect, ...; empty for a group that only commits offsets
    group_state: str = string(versions="4+")  # a state, as in DescribeGroups; other group types have their own states
    group_type: str = string(versions="5+")  # classic, consumer, share or streams (KIP-848)


class ListGroupsResponse(Response, api_key=16, versions="0-5", flexible="3+"):
    """The groups that this broker coordinates."""

    throttle_time_ms: int = int32(versions="1+")
    error_code: int = int16()
    groups: list[ListedGroup] = array(ListedGroup)
