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


_command_config_option = click.option(
    "--command-config",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Properties of a client, as Kafka's tools take them: security.protocol, ssl.* and sasl.*.",
)


@click.group()
def cluster() -> None:
    """Start, stop, grow and describe clusters of several brokers.

    `start` and `stop` are for a cluster on this machine. `status` describes any Kafka cluster, and `grow` spreads the
    partitions of any.
    """


@cluster.command()
@click.argument("properties", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--brokers",
    metavar="N",
    type=click.IntRange(1, 1000),
    help="Number of brokers. Without it, as many as the folder of the cluster has, or 3.",
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
    brokers: int | None,
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
    If there are several listeners, --port is for the first one. Each further one counts from its own port.

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

    sys.exit(run(ClusterOptions(properties, brokers or 0, zookeeper, port, data, overrides), detach=detach))


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
    "--brokers",
    metavar="N",
    type=click.IntRange(1, 1000),
    help="Number of brokers that the cluster has afterwards. Without it, no broker is added.",
)
@click.option(
    "--bootstrap-server",
    "bootstrap",
    metavar="HOST:PORT,...",
    help="Brokers of any cluster: spread its partitions, and start no broker.",
)
@_command_config_option
@_data_option("Folder of a cluster that `start` started.")
@click.option(
    "--throttle",
    metavar="BYTES_PER_SECOND",
    type=click.IntRange(1),
    help="Bytes per second that each broker sends and receives at most for replicas that move. Without it, no limit.",
)
@click.option("--dry-run", is_flag=True, help="Show the plan, and change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Write the plan as one line of JSON instead of tables.")
def grow(
    brokers: int | None,
    bootstrap: str | None,
    command_config: Path | None,
    data: Path,
    throttle: int | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Add brokers to a cluster, and spread its partitions over all brokers while clients work.

    The supervisor of the cluster starts the new brokers, on the next ports. Then replicas move until each broker has its
    share of all replicas and of the preferred leaders. The plan moves as few replicas as possible. If all brokers have a
    rack, no partition occupies fewer racks than before. Replication factors stay as they are.

    The brokers copy the replicas. --throttle limits them in the way of kafka-reassign-partitions. At the end, the command
    removes the throttles and elects the preferred leaders of the partitions that moved.

    If the command is interrupted, the copying goes on. Run the command again: it follows the copying to its end, plans what
    is missing, and removes the throttle. If there is nothing to do, it says so.

    --json writes the plan in the form that kafka-reassign-partitions reads, with further fields.

    The exit code is 0 when everything has moved or nothing had to, 1 if brokers cannot be added or partitions cannot move,
    and 2 if the options are not valid or no broker answers.

    \b
    Examples:
      kafkacompat cluster grow --brokers 5 --throttle 50000000
      kafkacompat cluster grow --brokers 5 --dry-run
      kafkacompat cluster grow --bootstrap-server kafka1:9092,kafka2:9092 --throttle 50000000
      kafkacompat cluster grow --brokers 5 --command-config client.properties
    """
    from kafkacompat.cli.cluster.grow import GrowOptions
    from kafkacompat.cli.cluster.grow import grow as run

    if brokers is not None and bootstrap is not None:
        raise click.UsageError("--brokers needs the folder of a cluster: leave out --bootstrap-server")
    sys.exit(run(GrowOptions(brokers, bootstrap, data, throttle, dry_run, as_json, command_config)))


@cluster.command()
@click.option(
    "--bootstrap-server",
    "bootstrap",
    metavar="HOST:PORT,...",
    help="Brokers of any cluster. Without it, the cluster in the folder of --data.",
)
@_command_config_option
@_data_option("Folder of a cluster that `start` started.")
@click.option("--json", "as_json", is_flag=True, help="Write one line of JSON with every partition instead of tables.")
def status(bootstrap: str | None, command_config: Path | None, data: Path, as_json: bool) -> None:
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
      kafkacompat cluster status --bootstrap-server kafka1:9092,kafka2:9092 --command-config client.properties
      kafkacompat cluster status --json | jq .under_replicated_partitions
    """
    from kafkacompat.cli.cluster.status import status as run

    sys.exit(run(bootstrap, data, command_config, as_json=as_json))
