"""The brokers of a cluster, and its state at a glance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafkacompat.cli.cluster.reading import PartitionDescription, read_cluster
from kafkacompat.cli.cluster.status import (
    EXIT_HEALTHY,
    EXIT_UNHEALTHY,
    MOST_ROWS,
    describe_cluster,
    list_broker_rows,
    list_partition_rows,
)
from kafkacompat.cli.remote.administration.group_listing import list_groups
from kafkacompat.cli.remote.errors import RemoteError
from kafkacompat.cli.requests import NoResponseError

if TYPE_CHECKING:
    from kafkacompat.cli.remote.cluster import RemoteCluster
    from kafkacompat.cli.remote.output import Output


def list_brokers(cluster: RemoteCluster, output: Output) -> None:
    """Write the brokers."""
    view = read_cluster(cluster.addresses, cluster.connect)
    if output.as_json:
        output.write_json(describe_cluster(view, ())["brokers"])
    else:
        output.write_rows(list_broker_rows(view), "There are no brokers")


def show_status(cluster: RemoteCluster, output: Output) -> int:
    """Write the state of the cluster; returns the exit code."""
    view = read_cluster(cluster.addresses, cluster.connect)
    groups = _count_groups(cluster)
    if output.as_json:
        description = describe_cluster(view, ())
        del description["processes"]
        output.write_json({**description, "groups": groups})
    else:
        controller = "none" if view.controller < 0 else str(view.controller)
        output.write_line(f"Cluster {view.cluster_id}, controller {controller}")
        output.write_rows(list_broker_rows(view), "There are no brokers")
        _write_partitions(output, "Offline partitions", view.offline)
        under_replicated = [partition for partition in view.under_replicated if not partition.is_offline]
        _write_partitions(output, "Under-replicated partitions", under_replicated)
        output.write_line(
            f"{len(view.partitions)} partitions: {len(view.offline)} offline, "
            f"{len(view.under_replicated)} under-replicated"
        )
        output.write_line(_describe_groups(groups))
    return EXIT_UNHEALTHY if view.offline or view.under_replicated else EXIT_HEALTHY


def _count_groups(cluster: RemoteCluster) -> dict[str, int] | None:
    """Return the number of groups by state; None if a broker does not list them, as one that is down."""
    try:
        return dict(sorted(Counter(group.state or "unknown" for group in list_groups(cluster)).items()))
    except (NoResponseError, RemoteError):
        return None


def _describe_groups(groups: dict[str, int] | None) -> str:
    if groups is None:
        return "The groups cannot be listed"
    states = ", ".join(f"{count} {state}" for state, count in groups.items())
    count = sum(groups.values())
    return f"{count} {'group' if count == 1 else 'groups'}" + (f": {states}" if states else "")


def _write_partitions(output: Output, title: str, partitions: Sequence[PartitionDescription]) -> None:
    if not partitions:
        return
    output.write_rows(list_partition_rows(partitions[:MOST_ROWS]), "", title)
    if len(partitions) > MOST_ROWS:
        output.write_line(f"and {len(partitions) - MOST_ROWS} more: --json has all")
