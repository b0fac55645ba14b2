"""What keeps a cluster from being started, found before a process starts: a sentence each, and nothing has changed."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from pathlib import Path

from kafkacompat.cli.cluster.folder import BROKER_PREFIX, ClusterCommandError
from kafkacompat.cli.cluster.supervision import EXIT_BAD_CONFIG
from kafkacompat.metadata.sqlite_store import FILE_NAME
from kafkacompat.server.bind_advice import explain_bind_failure
from kafkacompat.storage.directory.partition_folders import parse_folder_name


def check_folder(data: Path, brokers: int) -> None:
    """Raise ClusterCommandError if the folder holds data that this number of brokers would not serve."""
    _check_single_node(data, brokers)
    for number, folder in _list_further_brokers(data, brokers):
        partitions = sorted(path.name for path in folder.glob("data/*") if parse_folder_name(path.name))
        if partitions:
            raise ClusterCommandError(
                f"--brokers {brokers} is too few: broker {number} holds {len(partitions)} replicas in {folder}, "
                f"such as {partitions[0]}; start it too, with --brokers {number} or more"
            )


def _check_single_node(data: Path, brokers: int) -> None:
    folders = [data, *(data / f"{BROKER_PREFIX}{number}" / "data" for number in range(1, brokers + 1))]
    for folder in folders:
        if (folder / FILE_NAME).exists():
            raise ClusterCommandError(
                f"{folder} holds a single node, which is no broker of a cluster: name another folder with --data, "
                "or move its metadata into ZooKeeper with kafkacompat metadata export and import"
            )


def _list_further_brokers(data: Path, brokers: int) -> Iterator[tuple[int, Path]]:
    """Yield the folders of brokers with higher numbers than those that start, the highest number first."""
    folders = {
        int(number): folder
        for folder in data.glob(f"{BROKER_PREFIX}*")
        if (number := folder.name.removeprefix(BROKER_PREFIX)).isdecimal() and int(number) > brokers
    }
    return iter(sorted(folders.items(), reverse=True))


def check_distinct_ports(first_ports: Iterable[int], brokers: int) -> None:
    """Raise ClusterCommandError if listeners need the same port; broker 1 has *first_ports*, the next broker the next ones."""
    taken: set[int] = set()
    for first_port in filter(None, first_ports):
        ports = set(range(first_port, first_port + brokers))
        if taken & ports:
            raise ClusterCommandError(
                f"the port {min(taken & ports)} is needed twice, as {brokers} brokers take this number of ports from that"
                " of each listener on: keep the ports of listeners further apart",
                EXIT_BAD_CONFIG,
            )
        taken |= ports


def check_ports(host: str, first_port: int, count: int) -> None:
    """Raise ClusterCommandError if one of *count* ports cannot be listened on; *host* is "" for every address."""
    for port in range(first_port, first_port + count):
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(
                host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            with socket.socket(family, kind, protocol) as probe:
                # As a server does: connections that ended lately do not hold the port.
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
                # Another process may be bound to the same port with SO_REUSEADDR, and listen.
                probe.listen()
        except OSError as problem:
            raise ClusterCommandError(explain_bind_failure(host, port, problem)) from problem
