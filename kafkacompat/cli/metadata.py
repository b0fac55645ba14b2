"""`kafkacompat metadata`: create the first users, and move the metadata of a single node into ZooKeeper."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click


@click.group()
def metadata() -> None:
    """Create the first users, and move a single node into a cluster on ZooKeeper.

    To move a node, stop the broker, export its metadata, and import them into an empty tree. The log directories stay where they are.
    With zookeeper.connect set, the broker then starts as the first broker of the cluster.
    """


@metadata.command("export")
@click.argument("file", metavar="FILE|-")
@click.option(
    "--data",
    "directories",
    metavar="DIRECTORY",
    multiple=True,
    required=True,
    help="Log directory of the broker. Give all of log.dirs, and metadata.log.dir if it is set.",
)
def export_metadata(file: str, directories: Sequence[str]) -> None:
    """Write the metadata of a single node to FILE, or to standard output.

    The file has one line of JSON for each key: topics, partitions, configs, quotas, SCRAM credentials, the offsets of old
    consumers and the cluster's id. Only its owner may read it, because of the credentials. An existing file is refused.

    The exit code is 0, or 1 if a broker runs on the directories or the metadata cannot be read.

    \b
    Examples:
      kafkacompat metadata export node.jsonl --data /var/lib/kafkacompat
      kafkacompat metadata export - --data /disk1 --data /disk2 | jq .key
    """
    from kafkacompat.cli.metadata_export import export_to_file

    sys.exit(export_to_file(file, directories))


@metadata.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--zookeeper", required=True, metavar="HOST:PORT/CHROOT", help="ZooKeeper of the cluster, as in zookeeper.connect."
)
@click.option(
    "--data",
    "directories",
    metavar="DIRECTORY",
    multiple=True,
    help="Log directory of the broker. The command checks that FILE is its latest state.",
)
def import_metadata(file: Path, zookeeper: str, directories: Sequence[str]) -> None:
    """Create the metadata of FILE in ZooKeeper.

    The tree has to be empty, except for an earlier import of the same file that did not end. A missing chroot is created.

    With --data, the command refuses a FILE that is older than the metadata in the directories. Afterwards it renames the
    metadata file there, so that the broker does not start by itself with metadata that the cluster has changed since.

    The exit code is 0, 1 if the tree, the directories or ZooKeeper refuse the import, or 2 if FILE or an option is not
    valid.

    \b
    Example:
      kafkacompat metadata import node.jsonl --zookeeper zk1:2181,zk2:2181/kafka --data /var/lib/kafkacompat
    """
    from kafkacompat.cli.metadata_import import import_file

    sys.exit(import_file(file, zookeeper, directories))


@metadata.command("add-scram")
@click.argument("users", metavar="MECHANISM=[name=NAME]...", nargs=-1, required=True)
@click.option(
    "--data", "directory", metavar="DIRECTORY", help="metadata.log.dir, or the first of log.dirs, of a stopped broker."
)
@click.option("--zookeeper", metavar="HOST:PORT/CHROOT", help="ZooKeeper of a cluster, as in zookeeper.connect.")
def add_scram(users: Sequence[str], directory: str | None, zookeeper: str | None) -> None:
    """Create SCRAM users, or replace their passwords, as `kafka-storage format --add-scram` does.

    A new node or cluster whose listeners all require SCRAM has no user who could create others. Give each user as
    SCRAM-SHA-256=[name=alice] or SCRAM-SHA-512=[name=alice,iterations=8192]. The command asks for the password, or reads
    it from standard input, one line a user. password=... is accepted, too, but shows in lists of processes.

    The exit code is 0, 1 if a broker runs on the directory or the change is refused, or 2 if a user is not valid or is
    given twice.

    \b
    Examples:
      kafkacompat metadata add-scram 'SCRAM-SHA-512=[name=admin]' --data /var/lib/kafkacompat
      kafkacompat metadata add-scram 'SCRAM-SHA-256=[name=broker]' --zookeeper zk1:2181/kafka < password
    """
    from kafkacompat.cli.metadata_scram import add_users

    if (directory is None) == (zookeeper is None):
        raise click.UsageError("give either --data or --zookeeper")
    sys.exit(add_users(users, directory, zookeeper))
