"""Progress bars on standard error: of streaming queries, and of batch jobs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from spark_integration.queries.console import error_console
from spark_integration.queries.listener import BatchProgress
from spark_integration.topics.offsets import count_offsets_between

POLL_S = 0.3


class QueryBar:
    """Shows how far a query is: offsets read of the offsets that exist."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task
        self._done = 0

    def __call__(self, batch: BatchProgress) -> None:
        # Spark does not report where a query's first batch began.
        self._done += (
            count_offsets_between(batch.start_offsets, batch.end_offsets) if batch.start_offsets else batch.input_rows
        )
        self._progress.update(self._task, completed=self._done, total=self._done + batch.lag)


@contextmanager
def show_query_bar(title: str) -> Iterator[QueryBar]:
    """Show a bar that the batches of a streaming query advance."""
    with show_bar(title) as (progress, task):
        yield QueryBar(progress, task)


@contextmanager
def show_job_bar(spark: SparkSession, title: str) -> Iterator[None]:
    """Show a bar of the tasks of all batch jobs that the block runs."""
    over = threading.Event()
    with show_bar(title) as (progress, task):

        def update(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total or None)

        watcher = threading.Thread(target=_watch_tasks, args=(spark, over, update), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()
        # The last look at the tasks was before the last of them ended.
        total = progress.tasks[0].total
        progress.update(task, completed=total or 0)


@contextmanager
def show_bar(title: str) -> Iterator[tuple[Progress, TaskID]]:
    """Show a bar of unknown length; if its block ends normally and nothing gave it a length, it ends at 1/1."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=error_console()) as progress:
        task = progress.add_task(title, total=None)
        yield progress, task
        if progress.tasks[0].total is None:
            progress.update(task, completed=1, total=1)


def _watch_tasks(spark: SparkSession, over: threading.Event, update: Callable[[int, int], None]) -> None:
    tracker = spark.sparkContext.statusTracker()
    while not over.wait(POLL_S):
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        known = [stage for stage in stages if stage is not None]
        update(sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known))
