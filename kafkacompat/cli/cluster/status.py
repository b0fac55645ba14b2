"""`kafkacompat cluster status`: the state of a cluster as tables or as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from kafkacompat.cli.cluster.folder import ClusterCommandError, ClusterFolder, ProcessRecord
from kafkacompat.cli.cluster.reading import BrokerDescription, ClusterDescription, PartitionDescription, read_cluster
from kafkacompat.cli.columns import escape_control_characters
from kafkacompat.cli.command_config import read_command_config
from kafkacompat.cli.requests import BlockingConnection, NoResponseError, parse_address
from kafkacompat.cli.tables import make_console, make_table

EXIT_HEALTHY, EXIT_UNHEALTHY, EXIT_UNREADABLE = 0, 1, 2
MOST_ROWS = 50
"""Most partitions in a table; --json has all of them."""


def status(bootstrap: str | None, data: Path, command_config: Path | None = None, *, as_json: bool) -> int:
    """Show the state of a cluster; returns the exit code."""
    try:
        processes, servers = ([], bootstrap) if bootstrap is not None else _read_folder(data)
        addresses = [parse_address(server) for server in servers.split(",")]
        connect = partial(BlockingConnection, security=read_command_config(command_config))
        view = read_cluster(addresses, connect)
    except (ClusterCommandError, ValueError) as problem:
        return _refuse(str(problem))
    except NoResponseError as problem:
        return _refuse(f"no broker answers: {problem}")
    if as_json:
        click.echo(json.dumps(describe_cluster(view, processes)))
    else:
        show_cluster(view, processes, make_console())
    return EXIT_UNHEALTHY if view.offline or view.under_replicated else EXIT_HEALTHY


def _refuse(sentence: str) -> int:
    click.echo(escape_control_characters(f"kafkacompat: {sentence}"), err=True)
    return EXIT_UNREADABLE


def _read_folder(data: Path) -> tuple[list[ProcessRecord], str]:
    """Return the processes of a cluster that was started here, and its brokers' addresses; raises ClusterCommandError."""
    state = ClusterFolder(data).read_state()
    if state is None:
        raise ClusterCommandError(
            f"{data} holds no cluster: name its folder with --data, or a broker with --bootstrap-server"
        )
    addresses = [record.address for record in state.processes if record.address and record.is_broker]
    if not addresses:
        raise ClusterCommandError(f"no broker of the cluster in {data} was ready yet: see the logs in its folder")
    return state.processes, ",".join(addresses)


def describe_cluster(view: ClusterDescription, processes: Iterable[ProcessRecord]) -> dict[str, Any]:
    """Return the state as values for JSON."""
    return {
        "cluster_id": view.cluster_id,
        "controller": view.controller,
        "offline_partitions": len(view.offline),
        "under_replicated_partitions": len(view.under_replicated),
        "brokers": [_describe_broker(broker, view) for broker in view.brokers.values()],
        "partitions": [_describe_partition(partition) for partition in view.partitions],
        "processes": [
            {
                "name": record.name,
                "stage": record.stage,
                "pid": record.pid,
                "restarts": record.restarts,
                "exit_code": record.exit_code,
                "sentence": record.sentence,
            }
            for record in processes
        ],
    }


def _describe_broker(broker: BrokerDescription, view: ClusterDescription) -> dict[str, Any]:
    partitions = [partition for partition in view.partitions if broker.node_id in partition.replicas]
    return {
        "node_id": broker.node_id,
        "host": broker.host,
        "port": broker.port,
        "rack": broker.rack,
        "state": _name_state(broker),
        "is_controller": broker.node_id == view.controller,
        "leaders": sum(partition.leader == broker.node_id for partition in partitions),
        "replicas": len(partitions),
        "in_sync": sum(broker.node_id in partition.isr for partition in partitions),
        "lag": _sum_lags(broker.node_id, partitions),
        "size_bytes": broker.size_bytes,
        "failed_log_dirs": broker.failed_log_dirs,
        "problem": broker.problem,
    }


def _sum_lags(node_id: int, partitions: Iterable[PartitionDescription]) -> int | None:
    """Return the records that a broker's followers lack; None if the end of one of their logs is unknown."""
    lags = [partition.lags[node_id] for partition in partitions if node_id in partition.lags]
    known = [lag for lag in lags if lag is not None]
    return sum(known) if len(known) == len(lags) else None


def _name_state(broker: BrokerDescription) -> str:
    if not broker.is_registered:
        return "down"
    return "fenced" if broker.is_fenced else "live"


def _describe_partition(partition: PartitionDescription) -> dict[str, Any]:
    return {
        "topic": partition.name.topic,
        "partition": partition.name.partition,
        "leader": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "adding": list(partition.adding),
        "lags": {str(node_id): lag for node_id, lag in partition.lags.items()},
        "is_offline": partition.is_offline,
        "is_under_replicated": partition.is_under_replicated,
    }


def show_cluster(view: ClusterDescription, processes: Sequence[ProcessRecord], console: Console) -> None:
    """Write the tables: the brokers, and the partitions and processes that need attention."""
    console.print(Text(escape_control_characters(f"Cluster {view.cluster_id}, controller {_or_none(view.controller)}")))
    console.print(make_table("", list_broker_rows(view)))
    _show_partitions("Offline partitions", view.offline, console)
    under_replicated = [partition for partition in view.under_replicated if not partition.is_offline]
    _show_partitions("Under-replicated partitions", under_replicated, console)
    _show_processes([record for record in processes if record.stage != "ready" or record.restarts], console)
    console.print(
        f"{len(view.partitions)} partitions: {len(view.offline)} offline, "
        f"{len(view.under_replicated)} under-replicated",
        highlight=False,
    )


BROKER_COLUMNS: dict[str, Callable[[dict[str, Any]], object]] = {
    "broker": lambda row: row["node_id"],
    "address": lambda row: f"{row['host']}:{row['port']}" if row["host"] else None,
    "rack": lambda row: row["rack"],
    "state": lambda row: row["state"] + (", controller" if row["is_controller"] else ""),
    "leaders": lambda row: row["leaders"],
    "replicas": lambda row: row["replicas"],
    "in sync": lambda row: row["in_sync"],
    "lag": lambda row: "unknown" if row["lag"] is None else row["lag"],
    "bytes": lambda row: row["size_bytes"],
    "problem": lambda row: row["problem"] or ", ".join(f"{path} has failed" for path in row["failed_log_dirs"]),
}


def list_broker_rows(view: ClusterDescription) -> list[dict[str, object]]:
    """Return the rows of the brokers' table."""
    rows = [_describe_broker(broker, view) for broker in view.brokers.values()]
    return [{name: value(row) for name, value in BROKER_COLUMNS.items()} for row in rows]


def _show_partitions(title: str, partitions: Sequence[PartitionDescription], console: Console) -> None:
    if not partitions:
        return
    console.print(make_table(title, list_partition_rows(partitions[:MOST_ROWS])))
    if len(partitions) > MOST_ROWS:
        console.print(f"and {len(partitions) - MOST_ROWS} more: --json has all", highlight=False)


def list_partition_rows(partitions: Iterable[PartitionDescription]) -> list[dict[str, object]]:
    """Return the rows of a table of partitions."""
    return [
        {
            "topic": partition.name.topic,
            "partition": partition.name.partition,
            "leader": _or_none(partition.leader),
            "replicas": _join(partition.replicas),
            "in sync": _join(partition.isr),
            "lag": _join_lags(partition),
        }
        for partition in partitions
    ]


def _show_processes(records: Sequence[ProcessRecord], console: Console) -> None:
    if records:
        rows = [
            {
                "process": record.name,
                "stage": record.stage,
                "restarts": record.restarts,
                "last words": record.sentence,
                "log": record.log,
            }
            for record in records
        ]
        console.print(make_table("Processes that restarted or do not run", rows))


def _join(node_ids: Iterable[int]) -> str:
    return ",".join(map(str, node_ids))


def _join_lags(partition: PartitionDescription) -> str:
    return ", ".join(f"{node_id}: {'unknown' if lag is None else lag}" for node_id, lag in partition.lags.items())


def _or_none(node_id: int) -> str:
    return "none" if node_id < 0 else str(node_id)
