"""Triggers, and the end of a query that runs on."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest

from spark_integration.errors import PipelineError
from spark_integration.queries.query import catch_stop_signals
from spark_integration.queries.settings import trigger_arguments


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("availableNow", {"availableNow": True}),
        ("once", {"once": True}),
        ("10 seconds", {"processingTime": "10 seconds"}),
        ("500 milliseconds", {"processingTime": "500 milliseconds"}),
    ],
)
def test_triggers(text: str, arguments: dict[str, Any]) -> None:
    assert trigger_arguments(text) == arguments


@pytest.mark.parametrize(
    "text", ["", "now", "10", "seconds", "10 parsecs", "continuous 1 second", "-1 second", "availablenow"]
)
def test_a_bad_trigger_is_refused(text: str) -> None:
    with pytest.raises(PipelineError, match="is no trigger: give availableNow"):
        trigger_arguments(text)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_query_and_not_the_process(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with catch_stop_signals() as stopped:
        assert not stopped.is_set()
        signal.raise_signal(number)
        assert stopped.is_set()
    assert signal.getsignal(number) == before


def test_beside_the_main_thread_there_are_no_signals() -> None:
    seen = []

    def run() -> None:
        with catch_stop_signals() as stopped:
            seen.append(stopped.is_set())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [False]
