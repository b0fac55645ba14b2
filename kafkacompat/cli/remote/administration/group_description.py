"""`kafkacompat groups describe` and `delete`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from kafkacompat.cli.cluster.reading import PartitionName
from kafkacompat.cli.remote.administration.group_listing import GroupListing, explain_missing_group, list_groups
from kafkacompat.cli.remote.administration.group_members import GroupDescription, describe_group
from kafkacompat.cli.remote.administration.group_offsets import (
    GroupPosition,
    read_committed_offsets,
    read_share_offsets,
)
from kafkacompat.cli.remote.administration.log_offsets import LATEST, find_leaders, find_offsets
from kafkacompat.cli.remote.cluster import GROUP_KEY
from kafkacompat.cli.remote.errors import EXIT_DONE, EXIT_REFUSED, RemoteError, explain_refusal
from kafkacompat.cli.remote.outcomes import Outcome, write_outcomes
from kafkacompat.wire.apis.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kafkacompat.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kafkacompat.cli.remote.cluster import RemoteCluster
    from kafkacompat.cli.remote.output import Output
    from kafkacompat.wire.apis.metadata import MetadataResponseTopic

SMALL_LAG = 1000
"""A lag up to this many records is yellow, a larger one red."""
SHARE = "share"


class View(Enum):
    """What `describe` shows as a table; JSON has all of it."""

    OFFSETS = "offsets"
    MEMBERS = "members"
    STATE = "state"


def describe_groups(cluster: RemoteCluster, output: Output, names: Sequence[str] | None, view: View) -> int:
    """Write groups with their offsets, members or states; returns the exit code."""
    listings = list_groups(cluster)
    by_id = {listing.group_id: listing for listing in listings}
    topics = cluster.read_topics()
    leaders = find_leaders(topics)
    described, code = [], EXIT_DONE
    for name in sorted(by_id) if names is None else names:
        try:
            if name not in by_id:
                raise RemoteError(explain_missing_group(name, listings))
            described.append(_describe(cluster, by_id[name], topics, leaders))
        except RemoteError as problem:
            output.complain(str(problem))
            code = EXIT_REFUSED
    if output.as_json:
        output.write_json(described)
    elif described:
        _WRITERS[view](output, described)
    elif code == EXIT_DONE:
        output.report("There are no groups")
    return code


def _describe(
    cluster: RemoteCluster,
    listing: GroupListing,
    topics: Sequence[MetadataResponseTopic],
    leaders: Mapping[PartitionName, int],
) -> dict[str, Any]:
    group = describe_group(cluster, listing)
    if listing.group_type == SHARE:
        positions = read_share_offsets(cluster, listing.group_id)
    else:
        positions = read_committed_offsets(cluster, listing.group_id, topics)
    names = {*positions, *(name for member in group.members for name in member.partitions)}
    own_leaders = {name: leaders[name] for name in sorted(names) if name in leaders}
    offsets = _list_offsets(group, positions, find_offsets(cluster, own_leaders, LATEST))
    return {
        "group": group.group_id,
        "type": group.group_type,
        "state": group.state,
        "coordinator": group.coordinator,
        "assignor": group.assignor,
        "lag": sum(row["lag"] or 0 for row in offsets),
        "offsets": offsets,
        "members": [
            {
                "member_id": member.member_id,
                "instance_id": member.instance_id,
                "client_id": member.client_id,
                "host": member.host,
                "partitions": [{"topic": name.topic, "partition": name.partition} for name in member.partitions],
            }
            for member in group.members
        ],
    }


def _list_offsets(
    group: GroupDescription, positions: dict[PartitionName, GroupPosition], ends: dict[PartitionName, int]
) -> list[dict[str, Any]]:
    """Return a row for each partition that the group has an offset in or a member of."""
    # In a share group several members have a partition; the rows name the first.
    owners = {name: member for member in reversed(group.members) for name in member.partitions}
    rows = []
    for name in sorted({*positions, *owners}):
        position, end, owner = positions.get(name), ends.get(name), owners.get(name)
        lag = position.lag if position is not None else None
        if position is not None and lag is None and end is not None:
            lag = max(end - position.offset, 0)
        rows.append(
            {
                "topic": name.topic,
                "partition": name.partition,
                "offset": None if position is None else position.offset,
                "log_end_offset": end,
                "lag": lag,
                "member_id": None if owner is None else owner.member_id,
                "client_id": None if owner is None else owner.client_id,
                "host": None if owner is None else owner.host,
            }
        )
    return rows


def find_lag_style(lag: object) -> str:
    """Return the colour of a lag."""
    if not isinstance(lag, int):
        return ""
    if lag == 0:
        return "green"
    return "yellow" if lag <= SMALL_LAG else "red"


def _write_offsets(output: Output, groups: Sequence[dict[str, Any]]) -> None:
    columns = ("topic", "partition", "offset", "log_end_offset", "lag", "client_id", "host")
    rows = [
        {"group": group["group"], **{name: row[name] for name in columns}}
        for group in groups
        for row in group["offsets"]
    ]
    output.write_rows(rows, "The groups have no offsets", styles={"lag": find_lag_style})


def _write_members(output: Output, groups: Sequence[dict[str, Any]]) -> None:
    rows = [
        {
            "group": group["group"],
            "member_id": member["member_id"],
            "instance_id": member["instance_id"],
            "client_id": member["client_id"],
            "host": member["host"],
            "partitions": [f"{name['topic']}-{name['partition']}" for name in member["partitions"]],
        }
        for group in groups
        for member in group["members"]
    ]
    output.write_rows(rows, "The groups have no members")


def _write_states(output: Output, groups: Sequence[dict[str, Any]]) -> None:
    columns = ("group", "type", "state", "coordinator", "assignor", "lag")
    rows = [{**{name: group[name] for name in columns}, "members": len(group["members"])} for group in groups]
    output.write_rows(rows, "", styles={"lag": find_lag_style})


_WRITERS = {View.OFFSETS: _write_offsets, View.MEMBERS: _write_members, View.STATE: _write_states}


def delete_groups(cluster: RemoteCluster, output: Output, names: Sequence[str]) -> int:
    """Delete groups with their offsets; returns the exit code."""
    outcomes = []
    for name in names:
        response = cluster.request_coordinator(
            name,
            GROUP_KEY,
            DeleteGroupsRequest(groups_names=[name]),
            DeleteGroupsResponse,
            lambda answer: answer.results[0].error_code,
        )
        code = response.results[0].error_code
        if code == ErrorCode.GROUP_ID_NOT_FOUND:
            outcomes.append(Outcome(name, explain_missing_group(name, list_groups(cluster))))
        else:
            outcomes.append(Outcome(name, explain_refusal(code) if code else None))
    return write_outcomes(output, "group", "deleted", outcomes)
