"""The groups of a cluster, as all its brokers list them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from kafkacompat.cli.remote.errors import RemoteError, explain_refusal, suggest_name
from kafkacompat.wire.apis.list_groups import ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from kafkacompat.cli.remote.cluster import RemoteCluster
    from kafkacompat.cli.remote.output import Output

CLASSIC = "classic"


class GroupListing(NamedTuple):
    """A group; ``state`` is empty where brokers older than Kafka 2.6 list it."""

    group_id: str
    group_type: str
    protocol_type: str
    state: str
    coordinator: int


def list_groups(cluster: RemoteCluster) -> list[GroupListing]:
    """Return all groups by their ids; raises RemoteError and NoResponseError."""
    groups = []
    for broker in cluster.brokers.brokers:
        request = partial(cluster.request_broker, broker.node_id, ListGroupsRequest(), ListGroupsResponse)
        response = cluster.retry(request, lambda answer: answer.error_code)
        if response.error_code:
            raise RemoteError(f"broker {broker.node_id} lists no groups: {explain_refusal(response.error_code)}")
        groups += [
            GroupListing(
                group.group_id, group.group_type or CLASSIC, group.protocol_type, group.group_state, broker.node_id
            )
            for group in response.groups
        ]
    return sorted(groups)


def write_groups(cluster: RemoteCluster, output: Output, states: Sequence[str], types: Sequence[str]) -> None:
    """Write the groups in some states and of some types, or all."""
    wanted_states, wanted_types = {state.lower() for state in states}, {kind.lower() for kind in types}
    rows = [
        {
            "group": group.group_id,
            "type": group.group_type,
            "protocol": group.protocol_type,
            "state": group.state,
            "coordinator": group.coordinator,
        }
        for group in list_groups(cluster)
        if (not wanted_states or group.state.lower() in wanted_states)
        and (not wanted_types or group.group_type.lower() in wanted_types)
    ]
    output.write_rows(rows, "There are no such groups" if states or types else "There are no groups")


def explain_missing_group(name: str, groups: Iterable[GroupListing]) -> str:
    """Return that there is no such group, with a suggestion."""
    return f"there is no group {name}{suggest_name(name, (group.group_id for group in groups))}"
