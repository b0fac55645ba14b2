"""`kafkacompat log verify`."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from kafkacompat.cli.columns import escape_control_characters, write_columns
from kafkacompat.cli.progress import byte_progress
from kafkacompat.storage.files.operating_system import OsFiles
from kafkacompat.storage.files.os_errors import describe_error
from kafkacompat.storage.inspection.directory_check import check_target, count_log_bytes, find_check_target
from kafkacompat.storage.inspection.findings import Finding, UnreadablePath
from kafkacompat.storage.inspection.rows import DumpRow

EXIT_SOUND, EXIT_FINDINGS, EXIT_UNREADABLE = 0, 1, 2


def verify_paths(paths: Sequence[str], as_json: bool) -> int:
    """Check directories; returns the exit code: 0 when sound, 1 with findings, 2 when something cannot be read."""
    files = OsFiles(read_only=True)
    findings: list[Finding] = []
    unreadable: list[UnreadablePath] = []
    try:
        places = [find_check_target(files, path) for path in paths]
        size_bytes = sum(count_log_bytes(files, place) for place in places)
    except OSError as error:
        click.echo(escape_control_characters(f"kafkacompat: {describe_error(error)}"), err=True)
        return EXIT_UNREADABLE
    partitions = batches_bytes = 0
    with byte_progress("Verifying", size_bytes) as show:

        def advance(read_bytes: int) -> None:
            nonlocal batches_bytes
            batches_bytes += read_bytes
            show(read_bytes)

        for place in places:
            partitions += len(check_target(files, place, findings.append, advance, unreadable.append))
    for path, problem in unreadable:
        click.echo(
            escape_control_characters(f"kafkacompat: {path} cannot be read: {describe_error(problem)}"), err=True
        )
    show_findings(findings, as_json)
    wrong = [finding for finding in findings if not finding.note]
    counts = f"{len(wrong)} findings, {len(findings) - len(wrong)} notes"
    click.echo(f"Checked {partitions} partitions with {batches_bytes} bytes of batches: {counts}", err=True)
    return EXIT_UNREADABLE if unreadable else EXIT_FINDINGS if wrong else EXIT_SOUND


def show_findings(findings: Sequence[Finding], as_json: bool) -> None:
    """Write findings as a table or as lines of JSON; notes come last."""
    ordered = sorted(findings, key=lambda finding: finding.note)
    if as_json:
        for finding in ordered:
            fields = finding._asdict()
            click.echo(json.dumps({"path": fields.pop("path"), "what": fields.pop("fault"), **fields}))
        return
    write_columns((DumpRow("finding", _finding_fields(finding)) for finding in ordered), click.echo, click.echo)


def format_offsets(first: int, last: int) -> str:
    """Format a range of offsets; a negative *last* means an open end."""
    return f"{first} to {last if last >= 0 else 'the end'}"


def _finding_fields(finding: Finding) -> dict[str, object]:
    return {
        "": "note" if finding.note else "WRONG",
        "file": finding.path,
        "position": None if finding.position < 0 else finding.position,
        "offsets": None if finding.first_offset < 0 else format_offsets(finding.first_offset, finding.last_offset),
        "what": finding.fault,
    }
