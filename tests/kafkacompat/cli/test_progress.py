"""Bars end at their total, and show nothing where there is no terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from kafkacompat.cli.progress import byte_progress


@pytest.mark.parametrize(("total_bytes", "steps"), [(100, [60, 40]), (100, [60]), (100, [60, 70]), (0, [])])
def test_a_bar_ends_at_its_total(total_bytes: int, steps: list[int]) -> None:
    terminal = io.StringIO()
    with byte_progress("Verifying", total_bytes, Console(file=terminal, force_terminal=True, width=100)) as show:
        for step_bytes in steps:
            show(step_bytes)
    last_frame = terminal.getvalue().rpartition("Verifying")[2]
    assert f"{sum(steps)}/{sum(steps)} bytes" in last_frame


def test_without_a_terminal_there_is_no_bar() -> None:
    output = io.StringIO()
    with byte_progress("Verifying", 10, Console(file=output, force_terminal=False)) as show:
        show(10)
    assert output.getvalue() == ""
