"""The summary of the benchmarks: which side of Kafka's a figure is on, and the sentences about it."""

from __future__ import annotations

from typing import Any

import pytest

from bench.row import KAFKA, RECORDS
from bench.summary import BETTER, COMPARISONS, LEVEL, WORSE, Comparison, sendfile_sentence, summarize_results


def make_results(
    ours: list[float], theirs: list[float], metric: str = "records/s"
) -> dict[str, list[dict[str, float]]]:
    return {RECORDS: [{metric: value} for value in ours], KAFKA: [{metric: value} for value in theirs]}


@pytest.mark.parametrize(
    ("ours", "more_is_better", "side"),
    [
        ([2.0, 3.0, 4.0], True, BETTER),
        ([2.0, 3.0, 4.0], False, WORSE),
        ([0.2, 0.3, 0.4], True, WORSE),
        ([0.2, 0.3, 0.4], False, BETTER),
        ([0.5, 1.5, 2.0], True, LEVEL),
        ([0.5, 1.5, 2.0], False, LEVEL),
        ([1.0, 1.0, 1.0], True, LEVEL),
    ],
)
def test_the_side_is_where_the_whole_range_lies(ours: list[float], more_is_better: bool, side: str) -> None:
    comparison = Comparison("row", "records/s", "", more_is_better=more_is_better)
    assert comparison.side(make_results(ours, [1.0, 1.0, 1.0])) == side


def test_a_sentence_has_medians_and_ratio_and_names_a_scaled_load() -> None:
    comparison = Comparison("row", "records/s", "Produce: {ours}, Kafka {theirs}")
    measured = make_results([1.0, 5000.0, 9000.0], [2.0, 2.0, 2.0])
    assert comparison.words(measured, "") == "Produce: 5,000, Kafka 2: 2,500 times (1,250 to 3,500)."
    assert comparison.words(measured, " Loads scaled by 0.3.").endswith("3,500). Loads scaled by 0.3.")


def test_every_comparison_is_listed_once_under_its_side() -> None:
    stored: dict[str, Any] = {}
    for comparison in COMPARISONS:
        row = stored.setdefault(comparison.row, {"note": "", "results": {}})
        for contender, value in ((comparison.contender, 2.0), (comparison.kafka, 1.0)):
            samples = row["results"].setdefault(contender, [{} for _ in range(5)])
            for sample in samples:
                sample[comparison.metric] = value
    lines = list(summarize_results(stored))
    better, worse = (lines.index(f"**{side}:**\n") for side in (BETTER, WORSE))
    bullets = [line for line in lines if line.startswith("- ")]
    assert len(bullets) == len(COMPARISONS) + 1  # nothing is level
    assert any(line.startswith("- Raw fetch: 2 records a second") for line in lines[better:worse])
    assert any(line.startswith("- Start of a new node: 2 s") for line in lines[worse:])


def test_rows_without_results_are_left_out() -> None:
    assert sum(line == "- nothing." for line in summarize_results({})) == 3


def test_the_bare_loop_is_named_only_with_its_figure() -> None:
    assert "there is no figure here" in sendfile_sentence({})
    measured = {"fetch MB/s": 1400.0, "bare sendfile MB/s": 1500.0}
    words = sendfile_sentence({"sendfile": {"results": {RECORDS: [{**measured, "share of bare": 0.9333}]}}})
    assert words.startswith("Raw fetch has 0.933 of the speed of a bare `sendfile` loop: 1,400 MB/s beside 1,500 MB/s")
    level = [{**measured, "share of bare": share} for share in (0.9, 1.0, 1.1)]
    words = sendfile_sentence({"sendfile": {"results": {RECORDS: level}}})
    assert words.startswith("Raw fetch runs at the speed of a bare `sendfile` loop")
    assert words.endswith("the share is 1 (0.95 to 1.05).")
