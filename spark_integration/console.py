"""What a person sees while a pipeline works: a bar on standard error, and what it did in the end."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from spark_integration.listener import BatchProgress
from spark_integration.offsets import distance

POLL_S = 0.3


@dataclass(frozen=True)
class Summary:
    """What a pipeline did; each adds fields of its own, in the order in which they are to be told."""

    @property
    def exit_code(self) -> int:
        """0, or 1 if the work is done and has found what the user asked to be told of."""
        return 0

    def show(self) -> None:
        """Print it for a person: a line for each figure."""
        for name, value in asdict(self).items():
            if value is not None:
                print(f"{_shown(value):>14} {name.replace('_', ' ')}")


def console() -> Console:
    """Return the console of standard error: standard output carries results alone, and texts may hold brackets."""
    return Console(stderr=True, highlight=False, markup=False)


def tell(summary: Summary, as_json: bool) -> None:
    """Print what was done, for a person or as one JSON object."""
    if as_json:
        print(json.dumps(asdict(summary), default=str))
    else:
        summary.show()
    sys.stdout.flush()


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_shown(one)}" for name, one in value.items()) or "no"
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


class Bar:
    """Shows how far a query has come: offsets read of those that are there."""

    def __init__(self, progress: Progress, words: str) -> None:
        self._progress = progress
        self._task = progress.add_task(words, total=None)
        self._done = 0

    def __call__(self, done: BatchProgress) -> None:
        # Spark does not tell where a query's first batch began.
        self._done += distance(done.start_offsets, done.end_offsets) if done.start_offsets else done.input_rows
        self._progress.update(self._task, completed=self._done, total=self._done + done.lag)


@contextmanager
def bar(words: str) -> Iterator[Bar]:
    """Show a bar that a streaming query moves on."""
    with _progress() as progress:
        yield Bar(progress, words)


@contextmanager
def job_bar(spark: SparkSession, words: str) -> Iterator[None]:
    """Show a bar of the tasks of whatever batch jobs the block runs."""
    over = threading.Event()
    with _progress() as progress:
        task = progress.add_task(words, total=None)

        def show(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total or None)

        watcher = threading.Thread(target=_watch_tasks, args=(spark, over, show), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()


def _watch_tasks(spark: SparkSession, over: threading.Event, show: Callable[[int, int], None]) -> None:
    tracker = spark.sparkContext.statusTracker()
    while not over.wait(POLL_S):
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        known = [stage for stage in stages if stage is not None]
        show(sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known))


def _progress() -> Progress:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console())
