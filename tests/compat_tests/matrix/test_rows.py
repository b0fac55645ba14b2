"""The table of clients."""

from __future__ import annotations

import pytest

from compat_tests.matrix import __main__ as command_line
from compat_tests.matrix.driver import Launch
from compat_tests.matrix.programme import ALWAYS, FAILED, OK, STEPS, Cell, Outcome
from compat_tests.matrix.rows import LIMITS, ROWS, Row
from compat_tests.matrix.run import report_outcome


def test_features_are_steps() -> None:
    for row in ROWS.values():
        assert row.features <= set(STEPS) - ALWAYS, row.name


def test_limits_name_existing_rows_and_their_features() -> None:
    assert LIMITS.keys() <= ROWS.keys()
    for row in ROWS.values():
        assert row.limits.keys() <= row.features, row.name


def test_a_failure_that_is_the_clients_own_says_so() -> None:
    row = Row("a", "A", frozenset({"gzip", "zstd"}), lambda: Launch([]), {"gzip": "it cannot", "zstd": "it cannot"})
    cells = {"none": Cell(FAILED, "refused"), "gzip": Cell(FAILED, "refused"), "zstd": Cell(OK)}
    expected = {"none": (FAILED, "refused"), "gzip": (FAILED, "it cannot: refused"), "zstd": (OK, "")}
    assert report_outcome(row, Outcome(cells))["cells"] == expected


def test_titles_of_rows_are_distinct() -> None:
    assert len({row.title for row in ROWS.values()}) == len(ROWS)


def test_rows_are_chosen_by_how_their_names_begin() -> None:
    names = [row.name for row in command_line.select_rows(["kcat", "java-0.9"])]
    assert names == ["java-0.9.0.1", "kcat"]
    assert len(command_line.select_rows([])) == len(ROWS)


def test_a_row_that_is_not_there_is_refused() -> None:
    with pytest.raises(SystemExit, match="no row begins with 'java-7'"):
        command_line.select_rows(["java-7"])
