"""Writes docs/COMPATIBILITY.md and docs/compatibility.json from what runs found, this one and earlier ones."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from compat_tests.matrix.programme import FAILED, NOT_APPLICABLE, NOT_SERVED, NOT_TRIED, OK, PLAIN, STEPS

DOCS = Path(__file__).resolve().parents[2] / "docs"
RESULTS = DOCS / "compatibility.json"
PAGE = DOCS / "COMPATIBILITY.md"
OURS, KAFKA = "kafkacompat", "kafka"
KAFKA_TITLE = "Apache Kafka 4.3.1"

MARKS = {FAILED: "**{}**", NOT_SERVED: "*{}*"}

Result = Mapping[str, Any]
"""What a run found for one row: ``title``, ``date``, ``broker_version``, and either ``not_installed`` (why) or
``brokers``: OURS and KAFKA -> {"cells": step -> [outcome, why], "wire": summary, "versions": API -> versions}."""

INTRODUCTION = f"""# Which clients work

Written by `make matrix`; do not edit. Real clients, installed from their registries, each run the same programme on
this broker and, for comparison, on {KAFKA_TITLE}.
"""

LEGEND = f"""
## What a cell means

- **{OK}**: the client did it, and what it read back is what it wrote.
- **{FAILED}**: it did not; the reason stands below. A client that fails with plain records (*none*) is not asked for more.
- {NOT_APPLICABLE}: the client never had the feature, or has no way to use it.
- *{NOT_SERVED}*: the client has the feature, but the broker, as it was in that run, did not offer it in its ApiVersions,
  so it was not tried.

What each step is:

- *create*: make a topic, or have it made by asking for it.
- *none* to *zstd*: write 1,000 keyed records with that codec, read all of them back, compare keys, values, partitions
  and order; *headers* and *timestamps*: compare these too, for every codec.
- *group*: two members share four partitions, see every record, commit. *resume*: a consumer commits, closes, starts
  again, and goes on exactly there.
- *idempotent*: write with an idempotent producer. *transactions*: abort one, commit one, read the committed alone.
- *on the wire*: the versions of Produce and Fetch that the client used with this broker, and the formats of the record
  batches in them (magic), as a proxy between the two saw them. A step fails if a Fetch is answered in a newer format
  than its version allows, and if an idempotent or transactional producer never asks for what makes it one.
- *{KAFKA_TITLE}*: what came of the same programme there, in short.

All that was seen is in [compatibility.json](compatibility.json).
"""


FAILURES = """In the client's words; in brackets what went before on the wire: errors that the broker answered, and
requests upon which it closed the connection, which is how Kafka refuses a version that it does not serve."""


def load(path: Path = RESULTS) -> dict[str, Any]:
    """Return what earlier runs found: row name -> Result."""
    return dict(json.loads(path.read_text())) if path.exists() else {}


def store(results: Mapping[str, Result], order: Sequence[str], folder: Path = DOCS) -> None:
    """Write both files; rows stand in *order*, those that it does not name are left out."""
    kept = {name: results[name] for name in order if name in results}
    (folder / RESULTS.name).write_text(json.dumps(kept, indent=1) + "\n")
    (folder / PAGE.name).write_text("\n".join(page(kept)) + "\n")


def page(results: Mapping[str, Result]) -> Iterator[str]:
    """Yield the page's lines."""
    yield INTRODUCTION
    yield from _runs(results)
    yield from _summary(results)
    yield LEGEND
    yield from _table(results)
    yield from _failures(OURS, "this broker", results)
    yield from _failures(KAFKA, KAFKA_TITLE, results)
    yield from _not_installed(results)


def _summary(results: Mapping[str, Result]) -> Iterator[str]:
    """Count each column on each broker: ``ok of tried``; first the clients for which nothing failed."""
    yield "## In short\n"
    yield "How many clients could do a step, of those that have the feature:\n"
    yield f"| | everything it has | {' | '.join(STEPS)} |"
    yield f"|---|---|{'---|' * len(STEPS)}"
    run = [result["brokers"] for result in results.values() if "brokers" in result]
    for broker, title in ((OURS, "this broker"), (KAFKA, KAFKA_TITLE)):
        cells = [each[broker]["cells"] for each in run]
        faultless = sum(not any(outcome == FAILED for outcome, _ in each.values()) for each in cells)
        counts = [count([each[step][0] for each in cells]) for step in STEPS]
        yield f"| {title} | {faultless} of {len(run)} | {' | '.join(counts)} |"


def count(outcomes: Sequence[str]) -> str:
    """Return a column in few words: ``12 of 13``, or ``not served yet (13)``."""
    owed = len(outcomes) - outcomes.count(NOT_APPLICABLE)
    not_served = outcomes.count(NOT_SERVED)
    if owed and not_served == owed:
        return f"*{NOT_SERVED}* ({owed})"
    words = f"{outcomes.count(OK)} of {owed}"
    return f"{words}, *{NOT_SERVED}*: {not_served}" if not_served else words


def _table(results: Mapping[str, Result]) -> Iterator[str]:
    yield "## Client by client, on this broker\n"
    yield f"| client | {' | '.join(STEPS)} | on the wire | {KAFKA_TITLE} |"
    yield f"|---|{'---|' * len(STEPS)}---|---|"
    for result in results.values():
        if "brokers" in result:
            ours = result["brokers"][OURS]
            cells = [_mark(ours["cells"][step][0]) for step in STEPS]
            yield f"| {' | '.join([result['title'], *cells, ours['wire'], in_short(result['brokers'][KAFKA])])} |"
    yield ""


def _mark(outcome: str) -> str:
    return MARKS.get(outcome, "{}").format(outcome)


def in_short(broker: Result) -> str:
    """Return all cells of one broker in a few words: ``all ok``, ``all failed``, or which failed."""
    untried = (NOT_APPLICABLE, NOT_SERVED)
    outcomes = {step: outcome for step, (outcome, _) in broker["cells"].items() if outcome not in untried}
    failed = [step for step, outcome in outcomes.items() if outcome == FAILED]
    if not failed:
        return "all ok"
    return "**all failed**" if len(failed) == len(outcomes) else f"**failed:** {', '.join(failed)}"


def _failures(broker: str, title: str, results: Mapping[str, Result]) -> Iterator[str]:
    yield f"## What failed on {title}, and why\n"
    lines = [line for result in results.values() for line in _failures_of(broker, result)]
    if lines:
        yield f"{FAILURES}\n"
    yield from lines or ["Nothing."]
    yield ""


def _failures_of(broker: str, result: Result) -> Iterator[str]:
    """Yield one line for each reason: steps that failed for the same one share it."""
    cells = result["brokers"][broker]["cells"] if "brokers" in result else {}
    reasons: dict[str, list[str]] = {}
    for step, (outcome, why) in cells.items():
        if outcome == FAILED:
            reason = cells[PLAIN][1] if why == NOT_TRIED else why
            reasons.setdefault(_plain(reason), []).append(step)
    for why, steps in reasons.items():
        yield f"- {result['title']}, {', '.join(steps)}: {why}"


def _not_installed(results: Mapping[str, Result]) -> Iterator[str]:
    lines = [
        f"- {each['title']}: {_plain(each['not_installed'])}" for each in results.values() if "not_installed" in each
    ]
    if lines:
        yield "## Not tried\n"
        yield from lines
        yield ""


def _runs(results: Mapping[str, Result]) -> Iterator[str]:
    """Tell when and of which version of this broker each row was run; the run with most rows is not spelt out."""
    runs: dict[str, list[str]] = {}
    for result in results.values():
        runs.setdefault(f"{result['date']}, {result['broker_version']}", []).append(result["title"])
    for run, titles in sorted(runs.items(), key=lambda each: -len(each[1])):
        rest = "all" if len(runs) == 1 else "all others" if titles == max(runs.values(), key=len) else ", ".join(titles)
        yield f"- {run}: {rest} ({len(titles)} rows)"
    yield ""


def _plain(words: str) -> str:
    """Keep a client's own words from being taken for markup, and on one line."""
    one_line = " ".join(words.split())
    return "".join(f"\\{character}" if character in "\\`*_<>|[]" else character for character in one_line)


__all__ = ["KAFKA", "OK", "OURS", "PAGE", "RESULTS", "load", "page", "store"]
