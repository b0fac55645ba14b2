"""`kafkacompat log`: dump, check and repair the files of data directories."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click


@click.group()
def log() -> None:
    """Dump, verify or repair the files of data directories.

    These commands read the files themselves and need no broker. They also read files that Apache Kafka wrote. Only
    `repair` writes.
    """


@log.command()
@click.argument("paths", nargs=-1, metavar="[FILE|DIRECTORY]...")
@click.option("--files", "named", metavar="FILE,...", help="Files separated by commas, as an alternative to arguments.")
@click.option("--deep-iteration", is_flag=True, help="Show the records of each batch.")
@click.option("--print-data-log", is_flag=True, help="Show the records with keys, values and headers.")
@click.option("--skip-record-metadata", is_flag=True, help="Show only the keys and values of records.")
@click.option("--max-bytes", default=2**31 - 1, metavar="BYTES", help="Read at most this many bytes of each log file.")
@click.option("--index-sanity-check", is_flag=True, help="Only check indexes as a broker does at its start.")
@click.option("--verify-index-only", is_flag=True, help="Only show index entries that contradict the log.")
@click.option("--offsets-decoder", is_flag=True, help="Decode the records of __consumer_offsets.")
@click.option("--transaction-log-decoder", is_flag=True, help="Decode the records of __transaction_state.")
@click.option("--cluster-metadata-decoder", is_flag=True, help="Decode the records of __cluster_metadata.")
@click.option("--json", "as_json", is_flag=True, help="Write one line of JSON for each row instead of tables.")
def dump(paths: Sequence[str], named: str | None, **options: Any) -> None:
    """Show the contents of segments, indexes, snapshots and checkpoints.

    For a directory, the command shows every file of a known kind, also in its folders. Problems go to standard error.
    The command writes nothing, and a broker may run meanwhile. The options are those of Kafka's DumpLogSegments.

    The exit code is 0, or 2 when a file cannot be read.

    \b
    Examples:
      kafkacompat log dump kafkacompat-data/orders-0
      kafkacompat log dump --print-data-log orders-0/00000000000000000000.log
      kafkacompat log dump --offsets-decoder --json kafkacompat-data/__consumer_offsets-3
    """
    from kafkacompat.cli.log_dump import dump_paths

    wanted = [*paths, *(named.split(",") if named else ())]
    if not wanted:
        raise click.UsageError("name the files or directories to dump")
    sys.exit(dump_paths(wanted, **options))


_DIRECTORIES = click.argument("paths", nargs=-1, required=True, metavar="DIRECTORY...")
_JSON = click.option(
    "--json", "as_json", is_flag=True, help="Write one line of JSON for each finding instead of a table."
)


@log.command()
@_DIRECTORIES
@_JSON
def verify(paths: Sequence[str], as_json: bool) -> None:
    """Check log directories for damage.

    DIRECTORY may also be the folder of a single partition. The command reads every batch and compares it with its checksum, the offsets around it, the indexes, the producers'
    snapshots, the leader epochs and the checkpoints. It writes nothing, and a broker may run meanwhile. A note names
    something that the next start of a broker repairs by itself.

    The exit code is 0 when everything is sound, 1 when something is wrong, 2 when something cannot be read.

    \b
    Examples:
      kafkacompat log verify kafkacompat-data
      kafkacompat log verify --json kafkacompat-data/orders-0
    """
    from kafkacompat.cli.log_verify import verify_paths

    sys.exit(verify_paths(paths, as_json))


@log.command()
@_DIRECTORIES
@click.option("--truncate", is_flag=True, help="Cut a damaged log at its first damaged batch.")
@click.option("--dry-run", is_flag=True, help="Only show the steps.")
@click.option("--yes", is_flag=True, help="Do not ask before records are removed from a log.")
def repair(paths: Sequence[str], truncate: bool, dry_run: bool, yes: bool) -> None:
    """Repair log directories that no broker uses.

    DIRECTORY may also be the folder of a single partition. The command rebuilds wrong indexes and leader epochs from the log, and sets wrong snapshots aside. It names damaged
    batches by their offsets and leaves them in the log; a broker returns CORRUPT_MESSAGE for them. With --truncate, the
    log ends before its first damaged batch. Removed bytes are kept beside the log, in files whose names end in .removed.

    At the end the command checks the directories again. Its exit codes are those of `verify`.

    \b
    Examples:
      kafkacompat log repair --dry-run kafkacompat-data
      kafkacompat log repair --truncate kafkacompat-data/orders-0
    """
    from kafkacompat.cli.log_repair import repair_paths

    sys.exit(repair_paths(paths, truncate=truncate, dry_run=dry_run, yes=yes))
