"""The text that a run of the benchmark adds to its rows."""

from __future__ import annotations

import pytest

from bench.__main__ import describe_conditions


@pytest.mark.parametrize(
    ("scale", "note", "text"),
    [
        (1.0, "", ""),
        (0.3, "", " Loads scaled by 0.3."),
        (1.0, "Other work ran.", " Other work ran."),
        (0.5, "Other work ran.", " Loads scaled by 0.5. Other work ran."),
    ],
)
def test_a_row_names_its_conditions(scale: float, note: str, text: str) -> None:
    assert describe_conditions(scale, note) == text
