"""The table of what clients do with nasty topics, and which rows are run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compat_tests.nasty.__main__ import FEW, ORDER, merge_topics, select_rows
from compat_tests.nasty.report import BEGIN, END, PAGE, RESULTS, lay_out, mark, store_results

RUN = {"date": "2026-11-27", "broker_version": "kafkacompat 1"}
GOOD = {"title": "good 1", **RUN, "topics": {"empty_batch": {"all": "", "committed": ""}}}
BAD = {"title": "bad 2", **RUN, "topics": {"empty_batch": {"all": "", "committed": "stopped: [x]"}}}
WORSE = {"title": "worse 3", **RUN, "topics": {"mixed_formats": {"all": "1 record missing"}}}
ABSENT = {"title": "absent 4", **RUN, "not_installed": "no Python 2.7"}


def test_a_cell_says_which_isolation_levels_fail() -> None:
    assert mark(None) == "not tried"
    assert mark(GOOD["topics"]["empty_batch"]) == "ok"  # type: ignore[index]
    assert mark(BAD["topics"]["empty_batch"]) == "**no** (committed)"  # type: ignore[index]
    assert mark(WORSE["topics"]["mixed_formats"]) == "**no**"  # type: ignore[index]


def test_what_clients_did_is_listed_by_topic() -> None:
    lines = list(lay_out({"good": GOOD, "bad": BAD, "worse": WORSE, "absent": ABSENT}))
    assert "- bad 2: stopped: \\[x\\] (isolation: committed)" in lines
    assert lines[lines.index("**mixed formats**") + 2] == "- worse 3: 1 record missing"
    assert "- absent 4: no Python 2.7" in lines
    assert "Runs: 2026-11-27, kafkacompat 1." in lines


def test_results_replace_what_an_earlier_run_wrote(tmp_path: Path) -> None:
    (tmp_path / PAGE.name).write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    store_results({"b": BAD, "a": GOOD}, ["a", "b"], tmp_path)
    assert list(json.loads((tmp_path / RESULTS.name).read_text())) == ["a", "b"]
    page = (tmp_path / PAGE.name).read_text()
    assert page.startswith(f"before\n{BEGIN}\n\n| client |")
    assert page.endswith(f"\n{END}\nafter\n")
    assert "old" not in page
    assert page.index("good 1") < page.index("bad 2")


def test_topics_that_are_not_read_again_keep_their_results() -> None:
    again = {**WORSE, "topics": {"empty_batch": {"all": "x"}}}
    assert merge_topics(WORSE, again)["topics"] == {**WORSE["topics"], **again["topics"]}  # type: ignore[dict-item]
    assert merge_topics(ABSENT, WORSE) == WORSE


def test_rows_are_chosen_by_name_or_by_its_beginning() -> None:
    assert set(FEW) < set(ORDER)
    assert select_rows([]) == [name for name in ORDER if name in (*FEW, "spark")]
    assert select_rows(["kafka-python-3.0.12", "spark"]) == ["kafka-python-3.0.12", "spark"]
    assert len(select_rows(["kafkajs"])) == 2
    with pytest.raises(SystemExit, match="no row begins with 'x'"):
        select_rows(["x"])
