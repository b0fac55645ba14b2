"""`kafkacompat verify history`: the run with its progress, and what is said of it in the end."""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from kafkacompat.cli.columns import visible, write_columns
from kafkacompat.history.broker import RunError
from kafkacompat.history.checks import Verdict, judge
from kafkacompat.history.events import Event, HistoryError, read_history
from kafkacompat.history.index import counts_of
from kafkacompat.history.run import Plan, Run, Show, Tally
from kafkacompat.storage.inspection.rows import Row

EXIT_SOUND, EXIT_FINDINGS, EXIT_NOTHING_TO_JUDGE = 0, 1, 2
KILLS = 20
SECONDS_A_KILL = 3.0
SECONDS = 60.0


def check(recorded: Path) -> int:
    """Check a recorded history; return the exit code."""
    return _judge(read_history(recorded), {})


def run(history: Path | None, options: Mapping[str, Any]) -> int:
    """Make a history and check it; return the exit code."""
    if importlib.util.find_spec("confluent_kafka") is None:
        return _refuse("verify history needs confluent-kafka: install it by pip install 'kafkacompat[history]'")
    plan = _plan(**options)
    folder = Path(tempfile.mkdtemp(prefix="kafkacompat-history-"))
    try:
        code = _run(plan, folder, history or folder / "history.jsonl")
    except (RunError, OSError) as problem:
        code = _refuse(str(problem))
    if code == EXIT_SOUND or not any(folder.rglob("*.log")):
        shutil.rmtree(folder)
    else:
        click.echo(f"what clients and broker left is kept in {folder}", err=True)
    return code


def _run(plan: Plan, folder: Path, target: Path) -> int:
    # What cannot be written is found out before the work.
    target.touch()
    with _progress(plan) as show:
        one = Run(plan, folder, show)
        one.make_history(target)
    _tell(plan, one.tally)
    code = _judge(read_history(target), _counts(one.tally))
    if code == EXIT_SOUND:
        one.delete_topics()
    return code


def _plan(
    bootstrap: str | None,
    seconds: float | None,
    kills: int | None,
    restart_command: str | None,
    seed: int | None,
    topic_prefix: str | None,
    **others: Any,
) -> Plan:
    can_kill = bootstrap is None or restart_command is not None
    if bootstrap is None and restart_command is not None:
        raise click.UsageError("--restart-command is for the broker of a --bootstrap-server")
    if kills and not can_kill:
        raise click.UsageError("--kills with a --bootstrap-server needs a --restart-command")
    if kills is None:
        kills = KILLS if can_kill else 0
    if seconds is None:
        seconds = max(SECONDS_A_KILL * kills, SECONDS_A_KILL) if bootstrap is None else SECONDS
    seed = int(time.time()) if seed is None else seed
    return Plan(
        bootstrap=bootstrap,
        seconds=seconds,
        kills=kills,
        restart_command=restart_command,
        seed=seed,
        topic_prefix=topic_prefix or f"verify-history-{seed}",
        **others,
    )


@contextmanager
def _progress(plan: Plan) -> Iterator[Show]:
    """A bar of seconds on standard error, where that is a terminal."""
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[told]}"), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("starting", total=plan.seconds, told="")

        def show(tally: Tally) -> None:
            told = f"{tally.broker_kills} of {plan.kills} restarts, {tally.client_kills} clients killed"
            bar.update(task, description=tally.phase, completed=tally.seconds, told=told)

        yield show


def _tell(plan: Plan, tally: Tally) -> None:
    click.echo(f"--seed {plan.seed}", err=True)
    if not tally.serves_transactions and plan.transactional + plan.copiers:
        click.echo(
            "kafkacompat: the broker serves no transactions (it does not announce EndTxn and TxnOffsetCommit): "
            "transactional producers and copiers were left out",
            err=True,
        )
    if tally.clients_stuck:
        click.echo(f"these clients did not end when they were told to: {', '.join(tally.clients_stuck)}", err=True)


def _counts(tally: Tally) -> dict[str, int]:
    return {
        "broker killed": tally.broker_kills,
        "clients killed": tally.client_kills,
        "clients replaced": tally.clients_anew,
        "clients that did not end": len(tally.clients_stuck),
    }


def _judge(events: Iterable[Event], counts: dict[str, int]) -> int:
    try:
        history, verdicts = judge(events)
        counts = {**counts, **counts_of(history)}
        if not counts["values acknowledged"]:
            raise HistoryError("nothing was acknowledged, so there is nothing to judge")
    except (HistoryError, OSError) as problem:
        return _refuse(str(problem))
    write_columns((Row("count", {"what": what, "how many": count}) for what, count in counts.items()), _say, _say)
    write_columns(map(_row, verdicts), _say, _say)
    for verdict in verdicts:
        for what in verdict.first:
            _say(f"{verdict.check.name}: {visible(what)}")
    found = sum(verdict.found for verdict in verdicts)
    click.echo(f"{found} findings", err=True)
    return EXIT_FINDINGS if found else EXIT_SOUND


def _row(verdict: Verdict) -> Row:
    return Row("check", {"check": verdict.check.name, "found": verdict.found, "what must hold": verdict.check.holds})


def _say(text: str) -> None:
    click.echo(text)


def _refuse(why: str) -> int:
    click.echo(f"kafkacompat: {why}", err=True)
    return EXIT_NOTHING_TO_JUDGE
