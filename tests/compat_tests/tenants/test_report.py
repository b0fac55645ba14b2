"""The figures of ``make tenants``: phases, percentiles, and the table."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from compat_tests.brokers import KafkacompatBroker
from compat_tests.tenants import report
from compat_tests.tenants.attacks import ATTACKS
from compat_tests.tenants.pacing import Sample
from compat_tests.tenants.run import PHASES, Outcome, PhaseMeter, find_percentiles, split_span, summarize_attack

SLOWER = {"before": 1.0, "during": 3.0, "after": 2.0}


def make_outcome(tmp_path: Path) -> Outcome:
    """Return an outcome of phases of ten seconds, in which produce takes 1, 3 and 2 ms, and fetch twice as long."""
    meter = PhaseMeter(KafkacompatBroker(tmp_path))
    samples = []
    for number, phase in enumerate(PHASES):
        begin = 100.0 + 10 * number
        meter.spans[phase] = (begin, begin + 10)
        meter.cpu_share[phase], meter.resident_mb[phase] = 0.5, 50.0
        seconds = SLOWER[phase] / 1000
        samples += [Sample(begin + tenth / 10, seconds, 2 * seconds) for tenth in range(100)]
    samples.append(Sample(129.95, 0.002, None))
    figures = {"open at the end": 100.0, "limit": 100.0}
    return summarize_attack(ATTACKS["connections"], samples, meter, figures)


def test_each_record_counts_in_the_phase_in_which_it_was_due(tmp_path: Path) -> None:
    outcome = make_outcome(tmp_path)
    assert {phase: values["produce p99"] for phase, values in outcome.latencies_ms.items()} == SLOWER
    assert outcome.ratio("fetch p50") == 3.0
    assert (outcome.records, outcome.unanswered, outcome.is_bounded) == (301, 1, True)
    seconds = [point["second"] for point in outcome.timeline]
    assert seconds == sorted(seconds)
    assert (seconds[0], seconds[-1]) == (-9.688, 19.688)


def test_percentiles_leave_out_records_without_an_answer() -> None:
    samples = [Sample(0.0, number / 1000, None) for number in range(1, 102)]
    assert find_percentiles(samples) == {"produce p50": 51.0, "produce p99": 100.0}


def test_a_phase_is_cut_into_spans_that_meet() -> None:
    spans = list(split_span(5.0, 13.0))
    assert spans[0][0] == 5.0
    assert spans[-1][1] == 13.0
    assert all(first[1] == second[0] for first, second in pairwise(spans))


def test_the_table_marks_ratios_beyond_the_goal(tmp_path: Path) -> None:
    results, page = tmp_path / "tenants.json", tmp_path / "TENANTS.md"
    page.write_text(f"before\n{report.BEGIN}old\n{report.END}after\n")
    report.store_outcomes([make_outcome(tmp_path)], {"cores": 2}, results)
    report.write_page(page, results)
    text = page.read_text()
    assert (
        "| opens 10,000 connections | 1.0, 3.0, 2.0 | **3.00** | 2.0, 6.0, 4.0 | **3.00** | 0.50, 0.50, 0.50 |" in text
    )
    assert "old" not in text
    assert text.startswith("before\n")


def test_a_page_without_markers_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "TENANTS.md"
    page.write_text("no markers\n")
    with pytest.raises(ValueError, match="the page has no"):
        report.write_page(page, tmp_path / "tenants.json")
