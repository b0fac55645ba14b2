"""Runs `kafkacompat doctor`: one line for each verdict, and an exit code."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from random import SystemRandom

import click

from kafkacompat.cli.columns import escape_control_characters
from kafkacompat.cli.command_config import read_command_config
from kafkacompat.cli.remote.doctor.examination import examine
from kafkacompat.cli.remote.doctor.network import SystemNetwork
from kafkacompat.cli.remote.doctor.record import TOPIC_PREFIX
from kafkacompat.cli.remote.doctor.stages import DoctorAccess
from kafkacompat.cli.remote.doctor.verdicts import CheckOutcome, Verdict
from kafkacompat.cli.remote.running import run_guarded
from kafkacompat.security.scram import draw_nonce

_COLOURS = {
    CheckOutcome.OK: "green",
    CheckOutcome.WARNING: "yellow",
    CheckOutcome.FAILED: "red",
    CheckOutcome.SKIPPED: "bright_black",
}
_OUTCOME_WIDTH, _STAGE_WIDTH = 8, 11


def run(
    address: tuple[str, int], command_config: Path | None, *, timeout_s: float, tries_record: bool, as_json: bool
) -> int:
    """Examine a broker; returns 0 without a failure, 1 with one, 2 for options that cannot be used."""

    def work() -> int:
        security = read_command_config(command_config)
        access = DoctorAccess(SystemNetwork(), security, partial(draw_nonce, SystemRandom()), timeout_s)
        topic = f"{TOPIC_PREFIX}{secrets.token_hex(6)}" if tries_record else None
        write = _write_json if as_json else _write_line
        return write_verdicts(examine(access, *address, topic), write)

    return run_guarded(work)


def write_verdicts(verdicts: Iterable[Verdict], write: Callable[[Verdict], None]) -> int:
    """Write each verdict when it is there; returns the exit code."""
    code = 0
    for verdict in verdicts:
        write(verdict)
        if verdict.outcome is CheckOutcome.FAILED:
            code = 1
    return code


def _write_line(verdict: Verdict) -> None:
    outcome = click.style(verdict.outcome.value.ljust(_OUTCOME_WIDTH), fg=_COLOURS[verdict.outcome])
    click.echo(f"{outcome}{escape_control_characters(format_verdict(verdict))}")


def format_verdict(verdict: Verdict) -> str:
    """Return a verdict as a line without its outcome."""
    advice = f": {verdict.advice}" if verdict.advice else ""
    return f"{verdict.stage.ljust(_STAGE_WIDTH)}{verdict.text}{advice}"


def _write_json(verdict: Verdict) -> None:
    fields = {"stage": verdict.stage, "outcome": verdict.outcome.value, "text": verdict.text, "advice": verdict.advice}
    click.echo(json.dumps(fields))
