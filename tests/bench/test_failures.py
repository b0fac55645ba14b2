"""The table of failures in docs/RELIABILITY.md."""

from __future__ import annotations

from bench.failures import FAILURES, NOT_MEASURED, PAGE, fill_page
from bench.report import load_results
from bench.row import KAFKA, RECORDS
from bench.rows import ROWS

STORED = {
    "failover-shutdown": {
        "results": {
            RECORDS: [{"longest produce gap s": gap_s} for gap_s in (0.3, 0.1, 0.2)],
            KAFKA: [{"longest produce gap s": 1.5}],
        }
    }
}


def test_the_table_has_medians_of_what_was_measured() -> None:
    page = "before\n<!-- failures: made by bench/failures.py -->\nold\n<!-- end of failures -->\nafter\n"
    lines = fill_page(page, STORED).splitlines()
    assert (lines[0], lines[-1]) == ("before", "after")
    (measured,) = (line for line in lines if "stopped in good order" in line)
    assert "| 0.2 s | 1.5 s | 0.3 s |" in measured
    assert sum(NOT_MEASURED in line for line in lines) == len(FAILURES) - 1


def test_each_line_is_of_a_row_that_exists() -> None:
    assert {failure.row for failure in FAILURES} <= ROWS.keys()


def test_the_page_has_the_stored_figures() -> None:
    page = PAGE.read_text()
    assert fill_page(page, load_results()) == page
