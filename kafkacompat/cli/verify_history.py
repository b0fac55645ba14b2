"""`kafkacompat verify history`: the run with its progress, and the report."""

from __future__ import annotations

import importlib.util
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

from kafkacompat.cli.columns import escape_control_characters
from kafkacompat.cli.history_cluster import StartedCluster
from kafkacompat.cli.history_report import HistoryReport
from kafkacompat.cli.progress import progress_bar
from kafkacompat.history.broker import OwnBrokers, RunError, StartedBroker
from kafkacompat.history.checks import MAX_FINDINGS_KEPT, judge_history
from kafkacompat.history.client_properties import read_client_properties
from kafkacompat.history.counts import count_events, list_gaps
from kafkacompat.history.events import HistoryError, read_history
from kafkacompat.history.run import Run, RunPlan, RunTally, ShowTally
from kafkacompat.storage.files.os_errors import describe_error

EXIT_SOUND, EXIT_FINDINGS, EXIT_NOT_CHECKED = 0, 1, 2
KILLS = 20
SECONDS_A_KILL = 3.0
SECONDS = 60.0
OF_OWN_BROKERS = ("brokers", "overrides")
"""Options for the brokers that a run starts."""
OWN_SESSION_TIMEOUT_MS, FOREIGN_SESSION_TIMEOUT_MS = 2_000, 6_000
"""Session timeouts of the groups' members; other brokers may accept 6 s and more only."""


def check_recorded(recorded: Path, as_json: bool) -> int:
    """Check a recorded history; returns the exit code."""
    return _judge_and_report(recorded, {}, [], as_json)


def record_and_check(history: Path | None, as_json: bool, options: Mapping[str, Any]) -> int:
    """Record a history and check it; returns the exit code."""
    if importlib.util.find_spec("confluent_kafka") is None:
        return _report_unchecked(
            "verify history needs confluent-kafka: run pip install '.[cli]' in a clone of kafkacompat"
        )
    _check_options(**options)
    try:
        plan = _build_plan(**{name: value for name, value in options.items() if name not in OF_OWN_BROKERS})
    except RunError as problem:
        return _report_unchecked(str(problem))
    folder = Path(tempfile.mkdtemp(prefix="kafkacompat-history-"))
    try:
        with _interrupted_by_sigterm():
            own = _build_own_brokers(folder, **options)
            code = _record_and_report(plan, folder, own, history or folder / "history.jsonl", as_json)
    except (RunError, OSError) as problem:
        code = _report_unchecked(describe_error(problem))
    except KeyboardInterrupt:
        code = _report_unchecked("interrupted")
    if code == EXIT_SOUND or not any(folder.rglob("*.log")):
        shutil.rmtree(folder)
    else:
        topics = "" if plan.bootstrap is None else f", and the topics {plan.topic_prefix}-* on {plan.bootstrap}"
        click.echo(f"Kept the files of clients and broker in {folder}{topics}", err=True)
    return code


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end a run as SIGINT does, with all processes that the run started."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _build_own_brokers(
    folder: Path, bootstrap: str | None, brokers: int | None, overrides: Mapping[str, str], **_: Any
) -> OwnBrokers | None:
    """Return the brokers that the run starts, None for the user's; raises RunError."""
    if bootstrap is not None:
        return None
    if brokers is None:
        return StartedBroker(folder / "broker", overrides)
    return StartedCluster(folder / "cluster", brokers, overrides)


def _record_and_report(plan: RunPlan, folder: Path, own: OwnBrokers | None, target: Path, as_json: bool) -> int:
    # An unwritable target must fail before the work, not after it.
    target.touch()
    with _show_progress(plan) as show:
        history_run = Run(plan, folder, show, own)
        history_run.make_history(target)
    tally = history_run.tally
    _report_run(plan, tally)
    code = _judge_and_report(target, _count_clients(tally), tally.client_failures, as_json)
    if code == EXIT_SOUND:
        history_run.delete_topics()
    return code


def _check_options(
    bootstrap: str | None,
    kills: int | None,
    restart_command: str | None,
    command_config: Path | None,
    brokers: int | None,
    overrides: Mapping[str, str],
    **_: Any,
) -> None:
    if bootstrap is None:
        for name, value in (("--restart-command", restart_command), ("--command-config", command_config)):
            if value is not None:
                raise click.UsageError(f"{name} works only with --bootstrap-server")
    elif brokers is not None:
        raise click.UsageError(
            "--brokers does not work with --bootstrap-server: it sets the size of a cluster started here"
        )
    elif overrides:
        raise click.UsageError(
            "--override does not work with --bootstrap-server: it sets properties of a broker started here"
        )
    elif kills and restart_command is None:
        raise click.UsageError("--kills with --bootstrap-server needs --restart-command")


def _build_plan(
    bootstrap: str | None,
    seconds: float | None,
    kills: int | None,
    restart_command: str | None,
    seed: int | None,
    topic_prefix: str | None,
    command_config: Path | None,
    replication_factor: int | None,
    **others: Any,
) -> RunPlan:
    can_kill = bootstrap is None or restart_command is not None
    if kills is None:
        kills = KILLS if can_kill else 0
    if seconds is None:
        seconds = max(SECONDS_A_KILL * kills, SECONDS_A_KILL) if bootstrap is None else SECONDS
    seed = int(time.time()) if seed is None else seed
    return RunPlan(
        bootstrap=bootstrap,
        seconds=seconds,
        kills=kills,
        config={} if command_config is None else _read_client_config(command_config),
        replication_factor=replication_factor or -1,
        restart_command=restart_command,
        seed=seed,
        session_timeout_ms=FOREIGN_SESSION_TIMEOUT_MS if bootstrap else OWN_SESSION_TIMEOUT_MS,
        topic_prefix=topic_prefix or f"verify-history-{seed}",
        **others,
    )


def _read_client_config(command_config: Path) -> dict[str, str]:
    config, unknown = read_client_properties(command_config)
    if unknown:
        click.echo(
            f"Client properties that librdkafka does not know and that have no effect: {', '.join(unknown)}", err=True
        )
    return config


@contextmanager
def _show_progress(plan: RunPlan) -> Iterator[ShowTally]:
    """Show a bar of seconds on standard error, where that is a terminal."""
    with progress_bar(BarColumn(), TextColumn("{task.fields[counts]}"), TimeRemainingColumn()) as bar:
        task = bar.add_task("starting", total=plan.seconds, counts="")

        def show(tally: RunTally) -> None:
            counts = f"{tally.broker_kills} of {plan.kills} restarts, {tally.client_kills} clients killed"
            bar.update(task, description=tally.phase, completed=tally.seconds, counts=counts)

        yield show
        bar.update(task, description="done", completed=plan.seconds)


def _report_run(plan: RunPlan, tally: RunTally) -> None:
    click.echo(f"--seed {plan.seed}", err=True)
    if not tally.serves_transactions and plan.transactional + plan.copiers:
        click.echo(
            "kafkacompat: the broker does not serve EndTxn and TxnOffsetCommit, so the run had no transactional "
            "producers and copiers",
            err=True,
        )
    for why in tally.replacement_reasons[:MAX_FINDINGS_KEPT]:
        click.echo(f"Replaced a client: {escape_control_characters(why)}", err=True)


def _count_clients(tally: RunTally) -> dict[str, int]:
    return {
        "clients killed": tally.client_kills,
        "clients replaced": len(tally.replacement_reasons),
        "clients that failed": len(tally.client_failures),
    }


def _judge_and_report(recorded: Path, counts: dict[str, int], failed: list[str], as_json: bool) -> int:
    try:
        with Console(stderr=True).status("checking"):
            history, verdicts = judge_history(read_history(recorded))
    except (HistoryError, OSError) as problem:
        return _report_unchecked(describe_error(problem))
    gaps = [*list_gaps(history), *failed]
    report = HistoryReport({**counts, **count_events(history)}, history, verdicts)
    if as_json:
        report.write_json(gaps)
    else:
        report.write_tables()
    finding_count = report.finding_count
    click.echo(f"{finding_count} findings", err=True)
    if finding_count:
        return EXIT_FINDINGS
    if gaps:
        return _report_unchecked(f"the history is not enough to judge by: {', '.join(gaps)}")
    return EXIT_SOUND


def _report_unchecked(why: str) -> int:
    click.echo(f"kafkacompat: {why}", err=True)
    return EXIT_NOT_CHECKED
