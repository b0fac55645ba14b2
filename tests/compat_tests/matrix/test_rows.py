"""The table of clients."""

from __future__ import annotations

import pytest

from compat_tests.matrix import __main__ as command_line
from compat_tests.matrix.programme import ALWAYS, STEPS
from compat_tests.matrix.rows import ROWS


def test_features_are_steps() -> None:
    for row in ROWS.values():
        assert row.features <= set(STEPS) - ALWAYS, row.name


def test_titles_tell_rows_apart() -> None:
    assert len({row.title for row in ROWS.values()}) == len(ROWS)


def test_rows_are_chosen_by_how_their_names_begin() -> None:
    names = [row.name for row in command_line.chosen(["kcat", "java-0.9"])]
    assert names == ["java-0.9.0.1", "kcat"]
    assert len(command_line.chosen([])) == len(ROWS)


def test_a_row_that_is_not_there_is_refused() -> None:
    with pytest.raises(SystemExit, match="no row begins with 'java-7'"):
        command_line.chosen(["java-7"])
