"""What a person sees while a query works."""

from __future__ import annotations

import io

from rich.console import Console
from rich.progress import Progress

from spark_integration.console import Bar
from spark_integration.listener import BatchProgress
from spark_integration.offsets import Offsets, TopicPartition

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def batch(rows: int, start: Offsets, end: Offsets, latest: Offsets) -> BatchProgress:
    return BatchProgress("job", "id", "run", 0, "", rows, 0.0, 0.0, {}, start, end, latest)


def test_a_bar_counts_what_the_query_reads() -> None:
    """Not what went from the topic before: where the first batch began Spark does not tell."""
    progress = Progress(console=Console(file=io.StringIO()))
    bar = Bar(progress, "archive")
    latest = {A0: 1010, A1: 20}
    (task,) = progress.tasks
    bar(batch(5, {}, {A0: 1005, A1: 0}, latest))
    assert (task.completed, task.total) == (5, 30)
    # Six records and an offset without one.
    bar(batch(6, {A0: 1005, A1: 0}, {A0: 1010, A1: 2}, latest))
    assert (task.completed, task.total) == (12, 30)
    bar(batch(18, {A0: 1010, A1: 2}, latest, latest))
    assert (task.completed, task.total) == (30, 30)
