"""Progress bars on standard error, where that is a terminal. A bar that ends has reached its total."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)


@contextmanager
def byte_progress(
    description: str, total_bytes: int | None, console: Console | None = None
) -> Iterator[Callable[[int], None]]:
    """Show a bar of bytes, whose total is None if unknown; yields a function that takes the bytes of each step."""
    columns = BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()
    with progress_bar(*columns, console=console) as bar:
        task = bar.add_task(description, total=total_bytes)
        yield lambda step_bytes: bar.advance(task, step_bytes)
        # A broker that runs appends to the files and deletes some: what was read is the total then.
        completed = bar.tasks[0].completed
        bar.update(task, total=completed, completed=completed)


def progress_bar(*columns: ProgressColumn, console: Console | None = None) -> Progress:
    """A bar with a description before *columns*, which shows nothing where standard error is no terminal."""
    console = console or Console(stderr=True)
    return Progress(TextColumn("{task.description}"), *columns, console=console, disable=not console.is_terminal)
