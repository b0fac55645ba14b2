"""`kafkacompat log`: looking into data directories, and putting them in order."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click


@click.group()
def log() -> None:
    """Look into data directories: dump, verify, repair.

    All of it works on the files themselves, also on those that Apache Kafka wrote. Only `repair` writes.
    """


@log.command()
@click.argument("paths", nargs=-1, metavar="[FILE|DIRECTORY]...")
@click.option("--files", "named", metavar="FILE,...", help="Files, separated by commas: another way to name them.")
@click.option("--deep-iteration", is_flag=True, help="Show the records of each batch.")
@click.option("--print-data-log", is_flag=True, help="Show the records with keys, values and headers.")
@click.option("--skip-record-metadata", is_flag=True, help="Of records show keys and values only.")
@click.option("--max-bytes", default=2**31 - 1, metavar="BYTES", help="Read so many bytes of each log file at most.")
@click.option("--index-sanity-check", is_flag=True, help="Of indexes look only whether a start would believe them.")
@click.option("--verify-index-only", is_flag=True, help="Of indexes show only what the log contradicts.")
@click.option("--offsets-decoder", is_flag=True, help="Show records of __consumer_offsets as what they say.")
@click.option("--transaction-log-decoder", is_flag=True, help="The same for __transaction_state.")
@click.option("--cluster-metadata-decoder", is_flag=True, help="The same for __cluster_metadata.")
@click.option("--json", "as_json", is_flag=True, help="Write a line of JSON for each row instead of tables.")
def dump(paths: Sequence[str], named: str | None, **options: Any) -> None:
    """Show what files hold: segments and their indexes, snapshots, checkpoints.

    Of a directory every file is shown whose kind is known, also those of its folders. What is wrong with a file goes to
    standard error. Nothing is written, and the broker may run. The options are those of Kafka's DumpLogSegments.

    \b
    Examples:
      kafkacompat log dump kafkacompat-data/orders-0
      kafkacompat log dump --print-data-log orders-0/00000000000000000000.log
      kafkacompat log dump --offsets-decoder --json kafkacompat-data/__consumer_offsets-3
    """
    from kafkacompat.cli.log_dump import dump as run

    wanted = [*paths, *(named.split(",") if named else ())]
    if not wanted:
        raise click.UsageError("name the files or directories to dump")
    sys.exit(run(wanted, **options))


_DIRECTORIES = click.argument("paths", nargs=-1, required=True, metavar="DIRECTORY...")
_JSON = click.option(
    "--json", "as_json", is_flag=True, help="Write a line of JSON for each finding instead of a table."
)


@log.command()
@_DIRECTORIES
@_JSON
def verify(paths: Sequence[str], as_json: bool) -> None:
    """Check log directories, or single partitions' folders.

    Every batch is read and compared with its checksum, its place in the order of offsets, the indexes, the producers' snapshots, the leader
    epochs and the checkpoints. Nothing is written, and the broker may run. Notes say what the next start puts in order by itself.

    Ends with 0 when everything is sound, with 1 when something is not, with 2 when something cannot be read.
    """
    from kafkacompat.cli.log_verify import verify as run

    sys.exit(run(paths, as_json))


@log.command()
@_DIRECTORIES
@click.option("--truncate", is_flag=True, help="Cut a log that is damaged at the first damaged batch.")
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@click.option("--yes", is_flag=True, help="Do not ask before anything is taken out of a log.")
def repair(paths: Sequence[str], truncate: bool, dry_run: bool, yes: bool) -> None:
    """Put log directories in order that no broker uses.

    Indexes and leader epochs that are wrong are built anew from the log; snapshots that are wrong are set aside. What is damaged in a log is
    shown with its offsets. It stays as it is, and a broker answers CORRUPT_MESSAGE there, unless --truncate is given: then the log ends
    before it. What is taken out is kept beside the log in files ending in .removed.

    Ends as verify does, which is run again in the end.
    """
    from kafkacompat.cli.log_repair import repair as run

    sys.exit(run(paths, truncate=truncate, dry_run=dry_run, yes=yes))
