"""The groups of a cluster, as all its brokers list them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafkacompat.cli.remote.errors import RemoteError, explain_refusal
from kafkacompat.wire.apis.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from kafkacompat.cli.remote.cluster import RemoteCluster


def list_groups(cluster: RemoteCluster, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[ListedGroup]:
    """Return the groups in some states and of some types, or all, by their ids; raises RemoteError and NoResponseError."""
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
    groups = []
    for broker in cluster.brokers.brokers:
        response = cluster.retry(
            lambda node_id=broker.node_id: cluster.request_broker(node_id, request, ListGroupsResponse),  # type: ignore[misc]
            lambda answer: answer.error_code,
        )
        if response.error_code:
            raise RemoteError(f"broker {broker.node_id} lists no groups: {explain_refusal(response.error_code)}")
        groups += response.groups
    return sorted(groups, key=lambda group: group.group_id)
