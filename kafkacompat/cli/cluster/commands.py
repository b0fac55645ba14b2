"""`kafkacompat cluster`: its commands and their options."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from kafkacompat.cli.overrides import overrides_option

DATA = Path("kafkacompat-cluster")


def _data_option(help_text: str) -> Callable[..., Any]:
    return click.option(
        "--data",
        metavar="DIRECTORY",
        default=DATA,
        show_default=True,
        type=click.Path(file_okay=False, path_type=Path),
        help=help_text,
    )


@click.group()
def cluster() -> None:
    """Start, stop and describe clusters of several brokers.

    `start` and `stop` are for a cluster on this machine. `status` describes any Kafka cluster.
    """


@cluster.command()
@click.argument("properties", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--brokers", metavar="N", default=3, show_default=True, type=click.IntRange(1, 1000), help="Number of brokers."
)
@click.option(
    "--zookeeper",
    metavar="HOST:PORT",
    help="ZooKeeper of the cluster, as in zookeeper.connect: HOST:PORT,...[/CHROOT]. Without it, one is started here.",
)
@click.option(
    "--port",
    default=9092,
    show_default=True,
    type=click.IntRange(1, 65535),
    help="Port of the first broker. Each further broker has the next one.",
)
@_data_option("Folder of the cluster, with a folder for each broker.")
@click.option("--detach", is_flag=True, help="Continue in the background once all brokers are ready.")
@overrides_option("Set a property of every broker. May be given many times.")
def start(
    properties: Path | None,
    brokers: int,
    zookeeper: str | None,
    port: int,
    data: Path,
    detach: bool,
    overrides: dict[str, str],
) -> None:
    """Start a cluster on this machine and supervise it.

    PROPERTIES is a server.properties file of Apache Kafka for all brokers. The command sets node.id, the port, log.dirs
    and zookeeper.connect of each broker. Broker 1 has its data and its log in broker-1 in the folder of the cluster.
    Without PROPERTIES, topics have three replicas if there are three brokers, and min.insync.replicas is one less.

    Without --zookeeper, and without zookeeper.connect in PROPERTIES, the command starts a ZooKeeper on 127.0.0.1:2181, or
    on the next free port. This needs a JDK and, the first time, Maven.

    A process that ends is started again, after 0.5 s at first and after at most 30 s. The command gives it up if it
    rejects its configuration, or if its first five starts fail. If all processes are ready, standard output gets a line
    that begins with "kafkacompat cluster ready". All other lines go to standard error.

    SIGINT, SIGTERM and SIGHUP stop the brokers one after the other, and ZooKeeper last. A second signal kills all processes.

    The exit code is 0 after such a stop, 2 if options or properties are not valid, and 1 if the cluster cannot be started.

    \b
    Examples:
      kafkacompat cluster start
      kafkacompat cluster start --brokers 5 --port 19092 --data /var/lib/cluster --detach
      kafkacompat cluster start --zookeeper zk1:2181,zk2:2181/kafka --override num.partitions=6 server.properties
    """
    from kafkacompat.cli.cluster.plan import ClusterOptions
    from kafkacompat.cli.cluster.start import start as run

    sys.exit(run(ClusterOptions(properties, brokers, zookeeper, port, data, overrides), detach=detach))


@cluster.command()
@_data_option("Folder of the cluster.")
def stop(data: Path) -> None:
    """Stop a cluster that `start` started on this machine.

    The brokers stop one after the other, so that the others become leaders, and ZooKeeper last. If the supervisor was
    killed, the command stops the processes that it left. It sends no signal to any other process.

    The exit code is 0 when the cluster has stopped, and 1 if no cluster runs in the folder.

    \b
    Examples:
      kafkacompat cluster stop
      kafkacompat cluster stop --data /var/lib/cluster
    """
    from kafkacompat.cli.cluster.stop import stop as run

    sys.exit(run(data))


@cluster.command()
@click.option(
    "--bootstrap-server",
    "bootstrap",
    metavar="HOST:PORT,...",
    help="Brokers of any cluster, without TLS and SASL. Without it, the cluster in the folder of --data.",
)
@_data_option("Folder of a cluster that `start` started.")
@click.option("--json", "as_json", is_flag=True, help="Write one line of JSON with every partition instead of tables.")
def status(bootstrap: str | None, data: Path, as_json: bool) -> None:
    """Show brokers, controller, lag and missing replicas of any cluster.

    The lag of a replica is the number of records between the end of its log and the end of its leader's log. The command
    asks the leaders after the followers, so while clients write, it also counts the records of the time in between. A
    broker's lag is the sum over its replicas. It is unknown if a log's end is.

    With KRaft, the controller is the leader of the metadata quorum. A broker is down if only lists of replicas name it.
    Replicas that a reassignment adds do not count as missing. The bytes are those of all logs of the broker.

    The exit code is 0 if all partitions have a leader and all replicas in sync, 1 if partitions are offline or
    under-replicated, and 2 if no broker answers.

    \b
    Examples:
      kafkacompat cluster status
      kafkacompat cluster status --bootstrap-server kafka1:9092,kafka2:9092
      kafkacompat cluster status --json | jq .under_replicated_partitions
    """
    from kafkacompat.cli.cluster.status import status as run

    sys.exit(run(bootstrap, data, as_json=as_json))
