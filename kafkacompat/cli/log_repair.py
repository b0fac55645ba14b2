"""`kafkacompat log repair`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack

import click

from kafkacompat.cli.columns import escape_control_characters, write_columns
from kafkacompat.cli.log_verify import (
    EXIT_FINDINGS,
    EXIT_SOUND,
    EXIT_UNREADABLE,
    format_offsets,
    show_findings,
)
from kafkacompat.cli.progress import byte_progress
from kafkacompat.storage.files.filesystem import DirectoryLockedError, Files
from kafkacompat.storage.files.operating_system import OsFiles
from kafkacompat.storage.files.os_errors import describe_error
from kafkacompat.storage.inspection.directory_check import CheckTarget, check_target, count_log_bytes, find_check_target
from kafkacompat.storage.inspection.findings import Finding, UnreadablePath
from kafkacompat.storage.inspection.partition_check import CheckedPartition
from kafkacompat.storage.inspection.repair import RepairStep, lock_directory, plan_repair
from kafkacompat.storage.inspection.rows import DumpRow


def repair_paths(paths: Sequence[str], *, truncate: bool, dry_run: bool, yes: bool) -> int:
    """Repair directories; returns the exit code, which is that of `verify` afterwards."""
    files = OsFiles()
    try:
        places = [find_check_target(files, path) for path in paths]
        with ExitStack() as held:
            if in_use := _lock_directories(files, places, held):
                words = "is in use by a broker or another repair: stop it first"
                click.echo(escape_control_characters(f"kafkacompat: {in_use} {words}"), err=True)
                return EXIT_UNREADABLE
            return max(_repair_place(files, place, truncate, dry_run, yes) for place in places)
    except OSError as error:
        click.echo(escape_control_characters(f"kafkacompat: {describe_error(error)}"), err=True)
    return EXIT_UNREADABLE


def _lock_directories(files: Files, places: Sequence[CheckTarget], held: ExitStack) -> str | None:
    """Lock the directories; returns one that another process has locked. Raises OSError."""
    # Several folders may be in one directory; a directory that is named itself comes last, and is locked in any case.
    by_directory = {
        os.path.abspath(place.directory): place for place in sorted(places, key=lambda place: place.path or "")
    }
    for directory, place in by_directory.items():
        try:
            lock = lock_directory(files, place)
        except DirectoryLockedError:
            return directory
        if lock is not None:
            held.callback(lock.release)
    return None


def _repair_place(files: OsFiles, place: CheckTarget, truncate: bool, dry_run: bool, yes: bool) -> int:
    partitions, wrong = _check_and_show(files, place)
    steps = plan_repair(files, place, partitions, truncate)
    lossy = [step for step in steps if step.lost is not None]
    if steps:
        click.echo("Steps:")
        write_columns((DumpRow("step", _step_fields(step)) for step in steps), click.echo, click.echo)
    if not truncate and any(segment.lost for partition in partitions for segment in partition.segments):
        click.echo("Damaged batches stay in the log: --truncate cuts it at the first of them.")
    if not steps or dry_run:
        return EXIT_FINDINGS if wrong else EXIT_SOUND
    if lossy and not yes and not click.confirm("Remove these offsets from the logs?"):
        return EXIT_FINDINGS
    for step in steps:
        step.run()
        click.echo(f"Done: {escape_control_characters(step.path)}")
    click.echo("Check after the repair:")
    changed = {partition.folder for partition in partitions}
    _, wrong = _check_and_show(files, place._replace(folders=[folder for folder in place.folders if folder in changed]))
    return EXIT_FINDINGS if wrong else EXIT_SOUND


def _check_and_show(files: OsFiles, place: CheckTarget) -> tuple[list[CheckedPartition], bool]:
    """Check a place and show the findings; returns its partitions, and whether something is wrong. Raises OSError."""
    findings: list[Finding] = []
    unreadable: list[UnreadablePath] = []
    with byte_progress("Reading", count_log_bytes(files, place)) as show:
        partitions = check_target(files, place, findings.append, show, unreadable.append, live=False)
    if unreadable:
        raise unreadable[0].error
    show_findings(findings, as_json=False)
    wrong = any(not finding.note for finding in findings)
    if not wrong:
        click.echo(f"{place.path or place.folders[0]}: nothing is wrong")
    return partitions, wrong


def _step_fields(step: RepairStep) -> dict[str, object]:
    return {
        "file": step.path,
        "what": step.action,
        "lost offsets": format_offsets(*step.lost) if step.lost is not None else None,
        "kept in": step.kept_in or None,
    }
