"""The measured figures in README.md."""

from __future__ import annotations

from bench.readme import FIGURES, PAGE, fill_page
from bench.report import load_results
from bench.row import KAFKA, RECORDS

STORED = {
    "start": {
        "results": {
            RECORDS: [{"seconds to first answer": seconds, "resident MB": 45.0} for seconds in (0.3, 0.1, 0.2)],
            KAFKA: [{"seconds to first answer": 2.5, "resident MB": 400.0}],
        }
    }
}


def test_a_line_has_the_medians_of_both_brokers() -> None:
    line = "| start to the first answer | 9 s ¹ | 9 s ¹ | not measured |"
    assert fill_page(f"# title\n{line}\n", STORED) == (
        "# title\n| start to the first answer | 0.2 s ¹ | 2.5 s ¹ | not measured |\n"
    )


def test_a_figure_that_is_not_stored_stays() -> None:
    line = "| first record of a new group (librdkafka) | 9 s ¹ | 9 s ¹ |"
    assert fill_page(line, STORED) == line


def test_the_page_has_the_stored_figures() -> None:
    page = PAGE.read_text()
    assert all(f"| {label} |" in page for label in FIGURES)
    assert fill_page(page, load_results()) == page, "run python -m bench.readme"
