"""The results of the trial: docs/testing/nasty.json, and from it the table in docs/testing/nasty.md."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from compat_tests.brokers import ROOT
from compat_tests.matrix.report import make_plain
from compat_tests.nasty.shapes import SHAPES
from compat_tests.pages import replace_section

FOLDER = ROOT / "docs" / "testing"
RESULTS = FOLDER / "nasty.json"
PAGE = FOLDER / "nasty.md"

BEGIN, END = "<!-- make nasty writes from here -->", "<!-- to here -->"

Result = dict[str, Any]
"""A row: ``title``, ``date``, ``broker_version``, and ``topics``: shape -> isolation level -> "" or what the client did; or
``not_installed`` and why."""


def load_results(path: Path = RESULTS) -> dict[str, Result]:
    """Return the stored results: row name -> Result."""
    return dict(json.loads(path.read_text())) if path.exists() else {}


def store_results(results: Mapping[str, Result], order: Sequence[str], folder: Path = FOLDER) -> None:
    """Write the results, with the rows in *order*, and the part of the page that shows them."""
    kept = {name: results[name] for name in order if name in results}
    (folder / RESULTS.name).write_text(json.dumps(kept, indent=1) + "\n")
    page = folder / PAGE.name
    table = "".join(f"{line}\n" for line in lay_out(kept))
    page.write_text(replace_section(page.read_text(), BEGIN, END, f"\n\n{table}"))


def lay_out(results: Mapping[str, Result]) -> Iterator[str]:
    """Yield the lines of the table, and those of what clients did."""
    tried = [result for result in results.values() if "topics" in result]
    yield f"| client | {' | '.join(name.replace('_', ' ') for name in SHAPES)} |"
    yield f"|---|{'---|' * len(SHAPES)}"
    for result in tried:
        yield f"| {' | '.join([result['title'], *(mark(result['topics'].get(name)) for name in SHAPES)])} |"
    yield ""
    yield from _list_failures(tried)
    yield from _list_untried(results)
    yield from _list_runs(tried)


def mark(outcomes: Mapping[str, str] | None) -> str:
    """Return the cell of a client and a topic."""
    if not outcomes:
        return "not tried"
    failed = [isolation for isolation, problem in outcomes.items() if problem]
    if not failed:
        return "ok"
    return "**no**" if len(failed) == len(outcomes) else f"**no** ({', '.join(failed)})"


def _list_failures(tried: Sequence[Result]) -> Iterator[str]:
    """List by topic what clients did, those that did the same in one line."""
    for shape in SHAPES:
        did: dict[str, list[str]] = defaultdict(list)
        for result in tried:
            for isolation, problem in result["topics"].get(shape, {}).items():
                if problem:
                    several = len(result["topics"][shape]) > 1
                    words = f"{make_plain(problem)}{f' (isolation: {isolation})' if several else ''}"
                    did[words].append(result["title"])
        if did:
            yield f"**{shape.replace('_', ' ')}**"
            yield ""
            yield from (f"- {', '.join(titles)}: {words}" for words, titles in did.items())
            yield ""


def _list_untried(results: Mapping[str, Result]) -> Iterator[str]:
    lines = [
        f"- {result['title']}: {make_plain(result['not_installed'])}"
        for result in results.values()
        if "not_installed" in result
    ]
    if lines:
        yield from ("Not tried:", "", *lines, "")


def _list_runs(tried: Sequence[Result]) -> Iterator[str]:
    runs = sorted({f"{result['date']}, {result['broker_version']}" for result in tried})
    if runs:
        yield f"Runs: {'; '.join(runs)}."
        yield ""
