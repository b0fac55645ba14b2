"""Progress bars while a query works, and at its end."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rich.console import Console

from spark_integration.queries import bars
from spark_integration.queries.bars import show_job_bar, show_query_bar
from spark_integration.queries.listener import BatchProgress
from spark_integration.topics.offsets import Offsets, TopicPartition

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """The output on a pipe instead of a terminal: each bar once, as it ends."""
    written = io.StringIO()
    monkeypatch.setattr(bars, "error_console", lambda: Console(file=written, width=120))
    yield written


def make_batch(rows: int, start: Offsets, end: Offsets, latest: Offsets) -> BatchProgress:
    return BatchProgress("job", "id", "run", 0, "", rows, 0.0, 0.0, {}, start, end, latest)


def test_a_bar_counts_the_records_of_the_query(screen: io.StringIO) -> None:
    """Records that left the topic before do not count: Spark does not report where the first batch began."""
    latest = {A0: 1010, A1: 20}
    with show_query_bar("archive") as bar:
        (task,) = bar._progress.tasks
        bar(make_batch(5, {}, {A0: 1005, A1: 0}, latest))
        assert (task.completed, task.total) == (5, 30)
        # Six records and an offset without one.
        bar(make_batch(6, {A0: 1005, A1: 0}, {A0: 1010, A1: 2}, latest))
        assert (task.completed, task.total) == (12, 30)
        bar(make_batch(18, {A0: 1010, A1: 2}, latest, latest))
    assert " 30/30 " in screen.getvalue()


def test_a_bar_of_a_query_without_a_batch_ends_full(screen: io.StringIO) -> None:
    with show_query_bar("archive"):
        pass
    assert " 1/1 " in screen.getvalue()


def test_a_bar_of_work_that_fails_does_not_end_full(screen: io.StringIO) -> None:
    with pytest.raises(OSError, match="gone"), show_query_bar("archive"):
        raise OSError("gone")
    assert " 0/? " in screen.getvalue()


def test_a_bar_of_jobs_ends_full_wherever_the_last_look_found_them(
    monkeypatch: pytest.MonkeyPatch, screen: io.StringIO
) -> None:
    def look_once(_spark: Any, _over: Any, update: Callable[[int, int], None]) -> None:
        update(3, 8)

    monkeypatch.setattr(bars, "_watch_tasks", look_once)
    with show_job_bar(None, "audit"):
        pass
    assert " 8/8 " in screen.getvalue()


def test_a_bar_of_jobs_that_nothing_was_seen_of_ends_full(monkeypatch: pytest.MonkeyPatch, screen: io.StringIO) -> None:
    monkeypatch.setattr(bars, "_watch_tasks", lambda *_: None)
    with show_job_bar(None, "audit"):
        pass
    assert " 1/1 " in screen.getvalue()
