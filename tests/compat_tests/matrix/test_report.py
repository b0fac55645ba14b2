"""The page is made of results alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compat_tests.matrix import report
from compat_tests.matrix.programme import FAILED, NOT_APPLICABLE, NOT_SERVED, NOT_TRIED, OK, STEPS


def make_broker(**failed: str) -> dict[str, Any]:
    cells = {step: [FAILED, failed[step]] if step in failed else [OK, ""] for step in STEPS}
    cells["headers"] = [NOT_APPLICABLE, ""]
    return {"cells": cells, "wire": "Produce v2, Fetch v2, magic 1", "versions": {"Produce": [2]}}


def make_result(title: str, ours: dict[str, Any], kafka: dict[str, Any], date: str = "2026-01-02") -> dict[str, Any]:
    brokers = {report.OURS: ours, report.KAFKA: kafka}
    return {"title": title, "date": date, "broker_version": "kafkacompat 1 (abc)", "brokers": brokers}


def lay_out_page(**results: dict[str, Any]) -> str:
    return "\n".join(report.lay_out_page(results))


def test_a_row_has_a_cell_a_step_and_the_other_broker_in_short() -> None:
    text = lay_out_page(a=make_result("Client 1", make_broker(), make_broker(gzip="it hung")))
    cells = ["ok" if step != "headers" else "n/a" for step in STEPS]
    expected = f"| Client 1 | {' | '.join(cells)} | Produce v2, Fetch v2, magic 1 | **failed:** gzip |"
    assert expected in text.splitlines()


def test_reasons_stand_under_their_broker_and_equal_ones_once() -> None:
    text = lay_out_page(
        a=make_result("Client 1", make_broker(gzip="closed", lz4="closed", group="late"), make_broker(zstd="no codec"))
    )
    ours, kafka = text.split("## What failed on Apache Kafka 4.3.1, and why")
    assert "- Client 1, gzip, lz4: closed" in ours.splitlines()
    assert "- Client 1, group: late" in ours.splitlines()
    assert "- Client 1, zstd: no codec" in kafka.splitlines()


def test_an_unserved_step_is_neither_ok_nor_failed() -> None:
    ours = make_broker()
    ours["cells"]["transactions"] = [NOT_SERVED, ""]
    text = lay_out_page(a=make_result("Client 1", ours, make_broker()))
    row = next(line for line in text.splitlines() if line.startswith("| Client 1 |"))
    assert "| *not served yet* | Produce v2" in row
    assert text.count("Nothing.") == 2
    assert report.SOME_NOT_SERVED in text
    assert report.ALL_SERVED not in text
    assert report.in_short(ours) == "all ok"


def test_a_page_on_which_everything_was_served_says_so() -> None:
    text = lay_out_page(a=make_result("Client 1", make_broker(gzip="it hung"), make_broker()))
    assert report.ALL_SERVED in text
    assert report.SOME_NOT_SERVED not in text


@pytest.mark.parametrize(
    ("outcomes", "words"),
    [
        ([OK, OK, FAILED, NOT_APPLICABLE], "2 of 3"),
        ([NOT_APPLICABLE], "0 of 0"),
        ([NOT_SERVED, NOT_SERVED, NOT_APPLICABLE], "*not served yet* (2)"),
        ([OK, NOT_SERVED, FAILED], "1 of 3, *not served yet*: 1"),
    ],
)
def test_columns_are_counted(outcomes: list[str], words: str) -> None:
    assert report.count_outcomes(outcomes) == words


def test_each_broker_has_a_line_of_counts() -> None:
    text = lay_out_page(a=make_result("Client 1", make_broker(), make_broker(gzip="it hung")))
    counts = [line for line in text.splitlines() if " of " in line and line.startswith("|")]
    assert [line.split(" | ")[0] for line in counts] == ["| this broker", "| Apache Kafka 4.3.1"]
    assert [line.split(" | ")[1] for line in counts] == ["1 of 1", "0 of 1"]
    gzip = 2 + STEPS.index("gzip")
    assert [line.split(" | ")[gzip] for line in counts] == ["1 of 1", "0 of 1"]


def test_an_untried_step_is_listed_with_its_cause() -> None:
    text = lay_out_page(
        a=make_result("Client 1", make_broker(none="refused", gzip=NOT_TRIED, group=NOT_TRIED), make_broker())
    )
    assert "- Client 1, none, gzip, group: refused" in text.splitlines()
    assert NOT_TRIED not in text


def test_nothing_failed() -> None:
    text = lay_out_page(a=make_result("Client 1", make_broker(), make_broker()))
    assert text.count("Nothing.") == 2
    assert report.FAILURES not in text


def test_all_failed_is_said_so() -> None:
    everything = dict.fromkeys(STEPS, "refused")
    assert report.in_short(make_broker(**everything)) == "**all failed**"
    assert report.in_short(make_broker()) == "all ok"


def test_a_clients_words_are_not_taken_for_markup() -> None:
    text = lay_out_page(
        a=make_result("Client 1", make_broker(gzip="an <b>error</b> | in\n[two](lines)"), make_broker())
    )
    assert "- Client 1, gzip: an \\<b\\>error\\</b\\> \\| in \\[two\\](lines)" in text.splitlines()


def test_a_client_that_cannot_be_installed_says_why_and_has_no_row() -> None:
    missing = {"title": "Client 2", "date": "2026-01-02", "broker_version": "v", "not_installed": "no compiler"}
    text = lay_out_page(a=make_result("Client 1", make_broker(), make_broker()), b=missing)
    assert "- Client 2: no compiler" in text.splitlines()
    assert "| Client 2 |" not in text


def test_runs_are_dated() -> None:
    text = lay_out_page(
        a=make_result("Client 1", make_broker(), make_broker()),
        b=make_result("Client 2", make_broker(), make_broker(), "2026-02-03"),
    )
    assert "- 2026-01-02, kafkacompat 1 (abc): all others (1 row)" in text.splitlines()
    assert "- 2026-02-03, kafkacompat 1 (abc): Client 2 (1 row)" in text.splitlines()


def test_a_run_of_a_few_rows_keeps_the_others(tmp_path: Path) -> None:
    path = tmp_path / report.RESULTS.name
    first, second = (
        make_result("Client 1", make_broker(), make_broker()),
        make_result("Client 2", make_broker(), make_broker()),
    )
    report.store_results({"b": second, "gone": first}, ["a", "b"], tmp_path)
    report.store_results({**report.load_results(path), "a": first}, ["a", "b"], tmp_path)
    assert list(report.load_results(path)) == ["a", "b"]
    assert report.load_results(path) == {"a": first, "b": second}
    lines = (tmp_path / report.PAGE.name).read_text().splitlines()
    assert [line.split(" | ")[0] for line in lines if line.startswith("| Client")] == ["| Client 1", "| Client 2"]
