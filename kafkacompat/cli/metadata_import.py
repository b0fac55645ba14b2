"""`kafkacompat metadata import`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kafkacompat.cli.columns import escape_control_characters
from kafkacompat.cli.metadata_export import EXIT_REFUSED, StoppedNode
from kafkacompat.cli.zookeeper_work import work_on_zookeeper
from kafkacompat.cluster.errors import ClusterError
from kafkacompat.cluster.importing import import_metadata
from kafkacompat.metadata.codec import CLUSTER_ID
from kafkacompat.metadata.export_file import parse_export
from kafkacompat.metadata.store import StoreError
from kafkacompat.metadata.znodes.cluster import decode_cluster_id
from kafkacompat.metadata.zookeeper_store import ZooKeeperStore
from kafkacompat.storage.directory.meta_properties import LogDirectoryError
from kafkacompat.storage.files.os_errors import describe_error
from kafkacompat.zookeeper.client import ZooKeeperError
from kafkacompat.zookeeper.settings import ZooKeeperSettings, parse_connect

if TYPE_CHECKING:
    from kafkacompat.timers import Clock
    from kafkacompat.zookeeper.client import ZooKeeper

EXIT_BAD_INPUT = 2


def import_file(file: Path, connect: str, directories: Sequence[str]) -> int:
    """Create the metadata of *file* in ZooKeeper; returns the exit code."""
    try:
        parse_connect(connect)
        with file.open("rb") as lines:
            values = parse_export(lines, str(file))
    except (StoreError, ZooKeeperError, OSError) as problem:
        return _print_refusal(problem, EXIT_BAD_INPUT)
    try:
        with ExitStack() as held:
            node = held.enter_context(StoppedNode.hold(directories)) if directories else None
            if node is not None:
                _check_node(node, values, file)
            count = _import_values(connect, values)
            if node is not None:
                node.rename_metadata()
    except (StoreError, LogDirectoryError, ZooKeeperError, ClusterError, OSError) as problem:
        return _print_refusal(problem, EXIT_REFUSED)
    click.echo(f"Imported {count} keys; start the broker with zookeeper.connect={connect}")
    return 0


def _print_refusal(problem: Exception, exit_code: int) -> int:
    click.echo(escape_control_characters(f"kafkacompat: {describe_error(problem)}"), err=True)
    return exit_code


def _check_node(node: StoppedNode, values: Mapping[str, bytes], file: Path) -> None:
    """Raise LogDirectoryError or StoreError if the file is not the latest state of the node."""
    node.check_cluster(decode_cluster_id(values[CLUSTER_ID]))
    current = node.read_metadata()
    if current is not None and current != values:
        raise StoreError(f"the metadata have changed since {file} was written; export them again")


def _import_values(connect: str, values: Mapping[str, bytes]) -> int:
    """Import into ZooKeeper; return the number of keys."""

    async def import_values(zookeeper: ZooKeeper, clock: Clock) -> int:
        return await import_metadata(zookeeper, ZooKeeperStore(zookeeper, clock), values)

    interruption = "the import was interrupted; run it again to complete it"
    return work_on_zookeeper(ZooKeeperSettings(connect), import_values, interruption)
