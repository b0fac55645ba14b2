"""The output of an audit: verdict, table, report, and places in a record."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from spark_integration.audit.formatting import format_duration
from spark_integration.audit.plots import draw_plots
from spark_integration.audit.report import render_report, write_report
from spark_integration.audit.settings import AuditFields
from spark_integration.audit.summary import AuditSummary, audit_verdict, render_summary
from spark_integration.audit.windows import WINDOWS_LIMIT, fitting_width_ms, smallest_width_ms
from spark_integration.errors import PipelineError

MINUTE_MS, DAY_MS = 60_000, 86_400_000
START_MS = 1_700_000_000_000
TOPICS: list[dict[str, Any]] = [
    {
        "place": "topic",
        "topic": "<b>flights</b>",
        "records": 1_000,
        "offsets": 1_010,
        "producers": 2,
        "first_ms": START_MS,
        "last_ms": START_MS + 5 * MINUTE_MS,
        "found": {"gap": 30, "marker": 10},
    }
]


def make_summary(**changed: Any) -> AuditSummary:
    """A summary with something of each kind."""
    windows = [
        {"place": "topic", "topic": "flights", "producer": name, "start_ms": START_MS + n * MINUTE_MS, "records": n + 1}
        for n in (0, 1, 4)
        for name in ("UA", "AA")
    ]
    latency = {"place": "topic", "topic": "flights", "stage": "event-broker", "p50": 3, "p99": 2_500, "p99.9": 9_000}
    values: dict[str, Any] = {
        "verdict": audit_verdict({"gap": 30, "marker": 10}, TOPICS, by_sequence=True),
        "failed_on": [],
        "found": {"gap": 30, "marker": 10},
        "topics": TOPICS,
        "latency": [{**latency, "records": 1_000, "max": 9_001, "negative": 0}],
        "producers": [{"place": "topic", "topic": "flights", "producer": "UA", "records": 500, "gap": 30}],
        "details": {
            "gap": [{"place": "topic", "topic": "flights", "producer": "UA", "first": 7, "last": 9, "count": 3}]
        },
        "notes": ["a note"],
        "window_ms": MINUTE_MS,
        "windows": windows,
        "latency_windows": [{**latency, "start_ms": START_MS}],
    }
    return AuditSummary(**{**values, **changed})


def test_the_verdict() -> None:
    assert make_summary().verdict == "PROBLEMS in 1,000 records in 1 topic: 30 gap (sequences that no record has)"
    assert audit_verdict({"marker": 10}, TOPICS, by_sequence=True).startswith("OK: 1,000 records in 1 topic")
    assert audit_verdict({}, TOPICS, by_sequence=False).startswith("OK by offsets")


@pytest.mark.parametrize("by_sequence", [True, False])
def test_unexamined_offsets_make_the_verdict_unsure(by_sequence: bool) -> None:
    unsure = audit_verdict({"unexamined": 2}, TOPICS, by_sequence=by_sequence)
    assert unsure.startswith("UNSURE of 1,000 records in 1 topic: 2 unexamined (")
    assert audit_verdict({"unexamined": 2, "gap": 1}, TOPICS, by_sequence=by_sequence).startswith("PROBLEMS")


def test_cut_sequences_are_mentioned_beside_the_verdict() -> None:
    verdict = audit_verdict({"cut-sequence": 2}, TOPICS, by_sequence=True)
    assert re.match(r"OK: .* no sequence missing, twice or out of order but for 2 cut-sequence \(", verdict)


def test_the_table() -> None:
    """The verdict comes first; three of 30 gaps are listed, and the table says that there are more."""
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(render_summary(make_summary(failed_on=["gap: 30"])))
    lines = [line.rstrip() for line in console.export_text().splitlines()]
    assert lines[0] == make_summary().verdict
    assert lines[1] == "fails on gap: 30"
    assert any(re.search(r"topic +<b>flights</b> +1,000 +1,010 +2 .* 30 gap, 10 marker", line) for line in lines)
    assert "30 gap (sequences that no record has), the first 3" in lines
    assert lines[-1] == "Note: a note"


def test_the_report_needs_no_other_file(tmp_path: Path) -> None:
    """Names are escaped, plots take the page's colour, and nothing is fetched."""
    write_report(tmp_path / "report.html", make_summary())
    text = (tmp_path / "report.html").read_text()
    assert text == render_report(make_summary())
    assert list(tmp_path.iterdir()) == [tmp_path / "report.html"]
    assert "<td>&lt;b&gt;flights&lt;/b&gt;</td>" in text
    assert text.count("<svg") == 2
    assert "currentColor" in text and "#010203" not in text
    assert "prefers-color-scheme: dark" in text
    assert not re.search(r'(src|href)="[^#]', text)
    assert set(re.findall(r"https?://[^/\s\"]*", text)) <= {"http://www.w3.org", "https://matplotlib.org"}


def test_a_report_of_nothing() -> None:
    empty = make_summary(topics=[], latency=[], producers=[], details={}, windows=[], latency_windows=[], found={})
    assert "<svg" not in render_report(empty)


@pytest.mark.parametrize("strange_ms", [START_MS * 1_000, 2**63 - 1, -1, -(2**63)])
def test_a_time_that_is_none(strange_ms: int) -> None:
    """It is shown as a number, has no place in a plot, and does not widen its windows."""
    row = {**TOPICS[0], "last_ms": strange_ms}
    window = {"place": "topic", "topic": "flights", "producer": "UA", "start_ms": strange_ms, "records": 1}
    strange = make_summary(topics=[row], windows=[*make_summary().windows, window], latency_windows=[])
    console = Console(width=300, record=True, file=io.StringIO())
    console.print(render_summary(strange))
    text = render_report(strange)
    assert f" {strange_ms} " in console.export_text()
    assert f"<td>2023-11-14 22:13:20</td><td>{strange_ms}</td>" in text
    assert text.count("<svg") == 1
    assert fitting_width_ms([row]) == MINUTE_MS


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", [r"$\foo$", "a$b_{$", "$x$", "_p1", "日本", "two\nlines"])
def test_names_of_producers_are_no_formulas(name: str) -> None:
    rows = [{**row, "producer": name} if row["producer"] == "UA" else row for row in make_summary().windows]
    drawn = draw_plots(make_summary(windows=rows))[0][1]
    assert f">{' '.join(name.split())}</text>" in drawn
    assert ">AA</text>" in drawn


def test_a_long_name_leaves_room_for_the_plot() -> None:
    rows = [{**row, "producer": "p" * 1_000} for row in make_summary().windows]
    assert f">{'p' * 30}…</text>" in draw_plots(make_summary(windows=rows))[0][1]


@pytest.mark.parametrize(
    ("last_ms", "width_ms"),
    [(0, MINUTE_MS), (DAY_MS, MINUTE_MS), (2 * DAY_MS, 5 * MINUTE_MS), (100_000 * DAY_MS, 30 * DAY_MS)],
)
def test_windows_are_wide_enough(last_ms: int, width_ms: int) -> None:
    assert smallest_width_ms(START_MS, START_MS + last_ms) == width_ms
    assert last_ms // width_ms < WINDOWS_LIMIT or width_ms == 30 * DAY_MS


def test_durations() -> None:
    assert [format_duration(ms) for ms in (0, 999, 1_999, 2_000, 130_000, -7_200_000)] == [
        "0 ms",
        "999 ms",
        "1999 ms",
        "2.0 s",
        "2.2 min",
        "-2.0 h",
    ]


@pytest.mark.parametrize("place", ["producer", "header:", "key:name", "", "value:$.x"])
def test_a_bad_place_in_a_record_is_refused(place: str) -> None:
    with pytest.raises(PipelineError, match="is no place in a record"):
        AuditFields(producer=place)


@pytest.mark.parametrize("place", ["$.a.b", "key", "key:$.a", "header:source"])
def test_places_in_a_record(place: str) -> None:
    assert AuditFields(producer=place, sequence=place, event_time=place).producer == place
