"""`kafkacompat cluster grow`: further brokers, and partitions spread over all of them."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click

from kafkacompat.cli.cluster.folder import ClusterCommandError, ClusterFolder
from kafkacompat.cli.cluster.growth import add_brokers, check_growth, read_running
from kafkacompat.cli.cluster.reassigning import ClusterMover
from kafkacompat.cli.cluster.spread_run import SpreadPlan, SpreadRun
from kafkacompat.cli.cluster.status import EXIT_UNREADABLE, MOST_ROWS
from kafkacompat.cli.columns import escape_control_characters
from kafkacompat.cli.command_config import read_command_config
from kafkacompat.cli.progress import byte_progress
from kafkacompat.cli.requests import BlockingConnection, NoResponseError, parse_address
from kafkacompat.cli.tables import make_console, make_table
from kafkacompat.storage.files.os_errors import describe_error

EXIT_FAILED = 1
_NEVER_SET = threading.Event()


class GrowOptions(NamedTuple):
    """The options of `kafkacompat cluster grow`; ``throttle`` is in bytes per second and broker."""

    brokers: int | None
    bootstrap: str | None
    data: Path
    throttle: int | None
    dry_run: bool
    as_json: bool
    command_config: Path | None = None


def grow(options: GrowOptions) -> int:
    """Add brokers and spread partitions; returns the exit code."""
    return run_cluster_command(partial(_grow, options))


def run_cluster_command(run: Callable[[], None]) -> int:
    """Run a command that moves replicas; returns the exit code."""
    try:
        run()
    except NoResponseError as problem:
        return _refuse(f"no broker answers: {problem}", EXIT_UNREADABLE)
    except ValueError as problem:
        return _refuse(str(problem), EXIT_UNREADABLE)
    except (ClusterCommandError, OSError) as problem:
        code = problem.exit_code if isinstance(problem, ClusterCommandError) else EXIT_FAILED
        return _refuse(describe_error(problem), code)
    except KeyboardInterrupt:
        return _refuse(
            "interrupted: reassignments that began go on, and the same command follows them again", EXIT_FAILED
        )
    return 0


def _refuse(sentence: str, code: int) -> int:
    click.echo(escape_control_characters(f"kafkacompat: {sentence}"), err=True)
    return code


def _grow(options: GrowOptions) -> None:
    further: range = range(0)
    # Before brokers are added: a wrong file must not leave half of the work done.
    connect = partial(BlockingConnection, security=read_command_config(options.command_config))
    folder = ClusterFolder(options.data)
    if options.bootstrap is not None:
        servers = options.bootstrap
    else:
        state = read_running(folder)
        wanted = options.brokers or len(state.brokers)
        check_growth(state, wanted)
        if options.dry_run:
            further = range(len(state.brokers) + 1, wanted + 1)
        else:
            state = add_brokers(folder, wanted, pause)
        servers = state.bootstrap
    run = SpreadRun(ClusterMover([parse_address(server) for server in servers.split(",")], connect), pause)
    if options.bootstrap is None and not options.dry_run:
        run.await_brokers(range(1, wanted + 1))
    plan = run.plan(further)
    description = describe_plan(plan)
    if not options.as_json:
        show_plan(plan, description)
    if not options.dry_run:
        begun = time.monotonic()
        with copy_progress(plan) as report_progress:
            was_throttled = run.carry_out(plan, options.throttle, report_progress)
        description["seconds"] = round(time.monotonic() - begun, 3)
        report_end(plan, description["seconds"], was_throttled=was_throttled)
    if options.as_json:
        click.echo(json.dumps(description))


def pause(seconds: float) -> None:
    """Wait between two looks at a cluster."""
    _NEVER_SET.wait(seconds)


@contextmanager
def copy_progress(plan: SpreadPlan) -> Iterator[Callable[[int], None]]:
    """Yield the function that is given the bytes copied so far."""
    if not plan.all_moves:
        yield lambda copied_bytes: None
        return
    with byte_progress("Copying replicas", plan.size_bytes) as advance:
        reported = 0

        def report_copied(copied_bytes: int) -> None:
            nonlocal reported
            advance(copied_bytes - reported)
            reported = copied_bytes

        yield report_copied


def report_end(plan: SpreadPlan, seconds: float, *, was_throttled: bool) -> None:
    """Write what has moved."""
    if plan.all_moves:
        click.echo(f"Moved {plan.replicas_moved} replicas with {plan.size_bytes} bytes in {seconds:.1f} s", err=True)
    if was_throttled:
        click.echo("Removed the throttle", err=True)


def describe_plan(plan: SpreadPlan) -> dict[str, Any]:
    """Return the plan as values for JSON; ``version`` and ``partitions`` are those of kafka-reassign-partitions."""
    moves = plan.all_moves
    after = {**plan.layout.assignments, **{move.name: move.after for move in moves}}
    before = {**plan.layout.assignments, **{move.name: move.before for move in moves}}
    node_ids = sorted({*plan.layout.addresses, *(node_id for replicas in after.values() for node_id in replicas)})
    replicas_before, replicas_after = _count_replicas(before.values()), _count_replicas(after.values())
    leaders_before, leaders_after = (Counter(replicas[0] for replicas in all_of.values()) for all_of in (before, after))
    received = Counter[int]()
    for move in moves:
        received.update({node_id: plan.sizes.get(move.name, 0) for node_id in move.added})
    return {
        "version": 1,
        "partitions": [
            {"topic": move.name.topic, "partition": move.name.partition, "replicas": list(move.after)} for move in moves
        ],
        "brokers": [
            {
                "node_id": node_id,
                "rack": plan.layout.racks.get(node_id),
                "replicas": replicas_before[node_id],
                "replicas_after": replicas_after[node_id],
                "preferred_leaders": leaders_before[node_id],
                "preferred_leaders_after": leaders_after[node_id],
                "received_bytes": received[node_id],
            }
            for node_id in node_ids
        ],
        "ongoing": len(plan.ongoing),
        "replicas_moved": plan.replicas_moved,
        "size_bytes": plan.size_bytes,
    }


def _count_replicas(assignments: Any) -> Counter[int]:
    return Counter(node_id for replicas in assignments for node_id in replicas)


def show_plan(plan: SpreadPlan, description: dict[str, Any]) -> None:
    """Write the plan as tables: the brokers before and after, and the partitions that move."""
    console = make_console()
    moves: Sequence[Any] = plan.all_moves
    if not moves:
        console.print("Every broker has its share of the partitions: nothing moves", highlight=False)
        return
    console.print(make_table("Brokers", [_name_columns(broker) for broker in description["brokers"]]))
    rows = [
        {
            "topic": move.name.topic,
            "partition": move.name.partition,
            "replicas": ",".join(map(str, move.before)),
            "after": ",".join(map(str, move.after)),
            "bytes": plan.sizes.get(move.name, 0),
        }
        for move in moves[:MOST_ROWS]
    ]
    console.print(make_table("Partitions that move", rows))
    if len(moves) > MOST_ROWS:
        console.print(f"and {len(moves) - MOST_ROWS} more: --json has all", highlight=False)
    begun = f", {len(plan.ongoing)} partitions move already" if plan.ongoing else ""
    summary = f"{plan.replicas_moved} replicas move, with {plan.size_bytes} bytes{begun}"
    console.print(summary, highlight=False)


def _name_columns(broker: dict[str, Any]) -> dict[str, object]:
    names = {
        "node_id": "broker",
        "rack": "rack",
        "replicas": "replicas",
        "replicas_after": "after",
        "preferred_leaders": "leads",
        "preferred_leaders_after": "leads after",
        "received_bytes": "receives bytes",
    }
    return {title: broker[name] for name, title in names.items()}
