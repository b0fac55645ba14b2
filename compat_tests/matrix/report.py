"""Writes docs/COMPATIBILITY.md and docs/compatibility.json from the results of this run and of earlier ones."""

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
"""One row's result: ``title``, ``date``, ``broker_version``, and either ``not_installed`` (why) or
``brokers``: OURS and KAFKA -> {"cells": step -> [outcome, why], "wire": summary, "versions": API -> versions}."""

INTRODUCTION = f"""# Which clients work

This page lists real clients of every age, and what each can do on this broker and on {KAFKA_TITLE}. They are installed from
their registries, and each runs the same programme on both. `make matrix` runs them and writes this page; do not edit. All
observations are in [compatibility.json](compatibility.json).

**Contents:** [In short](#in-short) · [What a cell means](#what-a-cell-means) ·
[Client by client](#client-by-client-on-this-broker) · [Failures on this broker](#what-failed-on-this-broker-and-why) ·
[Failures on Kafka](#what-failed-on-apache-kafka-431-and-why) · [Runs](#runs)
"""

ALL_SERVED = "This broker served every step of the programme, transactions included, when these rows were run."
SOME_NOT_SERVED = f"Rows with *{NOT_SERVED}* were run before this broker served that step."

OLD_CLIENTS = """
Kafka 4.0 removed the oldest versions of the protocol (KIP-896); this broker serves them. Most failures in Kafka's line are of
clients that use these versions.
"""

LEGEND = f"""
## What a cell means

- **{OK}**: the client did it, and what it read back equals what it wrote.
- **{FAILED}**: it did not. The reason is given below the table. A client that fails with plain records (*none*) does not try
  the later steps.
- {NOT_APPLICABLE}: the client never had the feature, or has no way to use it.
- *{NOT_SERVED}*: the client has the feature, but the broker's ApiVersions did not list it in that run, so it was not tried.

The steps:

- *create*: create a topic, explicitly or by requesting it.
- *none* to *zstd*: write 1,000 keyed records with that codec, read all of them back, and compare keys, values, partitions and
  order. *headers* and *timestamps*: compare these too, for every codec.
- *group*: two members share four partitions, receive every record, and commit. *resume*: a consumer commits, closes, starts
  again, and continues exactly there.
- *idempotent*: write with an idempotent producer. *transactions*: abort one, commit one, and read only committed records.
- *on the wire*: the versions of Produce and Fetch that the client used with this broker, and the formats of the record
  batches in them (magic), as recorded by a proxy between the two. A step fails if a Fetch response has a newer format than its
  version allows, or if an idempotent or transactional producer never sends the requests that make it one.
- *{KAFKA_TITLE}*: the result of the same programme there, in short.
"""


FAILURES = """The reasons are in the client's own words. In brackets are the errors that the broker returned before, and the requests
on which it closed the connection, which is how Kafka refuses a version that it does not serve."""


def load_results(path: Path = RESULTS) -> dict[str, Any]:
    """Return the stored results: row name -> Result."""
    return dict(json.loads(path.read_text())) if path.exists() else {}


def store_results(results: Mapping[str, Result], order: Sequence[str], folder: Path = DOCS) -> None:
    """Write both files, with the rows in *order*; rows that it does not name are left out."""
    kept = {name: results[name] for name in order if name in results}
    (folder / RESULTS.name).write_text(json.dumps(kept, indent=1) + "\n")
    (folder / PAGE.name).write_text("\n".join(lay_out_page(kept)) + "\n")


def lay_out_page(results: Mapping[str, Result]) -> Iterator[str]:
    """Yield the page's lines."""
    yield INTRODUCTION
    yield from _lay_out_summary(results)
    yield LEGEND
    yield from _lay_out_table(results)
    yield from _list_failures(OURS, "this broker", results)
    yield from _list_failures(KAFKA, KAFKA_TITLE, results)
    yield from _not_installed(results)
    yield from _list_runs(results)


def _lay_out_summary(results: Mapping[str, Result]) -> Iterator[str]:
    """Count each column on each broker, ``ok of tried``, after the number of clients without a failure."""
    yield "## In short\n"
    yield "The number of clients that can do a step, of those that have the feature:\n"
    yield f"| | everything it has | {' | '.join(STEPS)} |"
    yield f"|---|---|{'---|' * len(STEPS)}"
    run = [result["brokers"] for result in results.values() if "brokers" in result]
    for broker, title in ((OURS, "this broker"), (KAFKA, KAFKA_TITLE)):
        cells = [brokers[broker]["cells"] for brokers in run]
        faultless = sum(not any(outcome == FAILED for outcome, _ in row.values()) for row in cells)
        counts = [count_outcomes([row[step][0] for row in cells]) for step in STEPS]
        yield f"| {title} | {faultless} of {len(run)} | {' | '.join(counts)} |"
    not_served = any(outcome == NOT_SERVED for brokers in run for outcome, _ in brokers[OURS]["cells"].values())
    yield f"\n{SOME_NOT_SERVED if not_served else ALL_SERVED}"
    yield OLD_CLIENTS.rstrip()


def count_outcomes(outcomes: Sequence[str]) -> str:
    """Return a column in few words: ``12 of 13``, or ``not served yet (13)``."""
    owed = len(outcomes) - outcomes.count(NOT_APPLICABLE)
    not_served = outcomes.count(NOT_SERVED)
    if owed and not_served == owed:
        return f"*{NOT_SERVED}* ({owed})"
    words = f"{outcomes.count(OK)} of {owed}"
    return f"{words}, *{NOT_SERVED}*: {not_served}" if not_served else words


def _lay_out_table(results: Mapping[str, Result]) -> Iterator[str]:
    yield "## Client by client, on this broker\n"
    yield f"| client | {' | '.join(STEPS)} | on the wire | {KAFKA_TITLE} |"
    yield f"|---|{'---|' * len(STEPS)}---|---|"
    for result in results.values():
        if "brokers" in result:
            ours = result["brokers"][OURS]
            cells = [_mark_outcome(ours["cells"][step][0]) for step in STEPS]
            yield f"| {' | '.join([result['title'], *cells, ours['wire'], in_short(result['brokers'][KAFKA])])} |"
    yield ""


def _mark_outcome(outcome: str) -> str:
    return MARKS.get(outcome, "{}").format(outcome)


def in_short(broker: Result) -> str:
    """Return all cells of one broker in a few words: ``all ok``, ``all failed``, or the failed steps."""
    untried = (NOT_APPLICABLE, NOT_SERVED)
    outcomes = {step: outcome for step, (outcome, _) in broker["cells"].items() if outcome not in untried}
    failed = [step for step, outcome in outcomes.items() if outcome == FAILED]
    if not failed:
        return "all ok"
    return "**all failed**" if len(failed) == len(outcomes) else f"**failed:** {', '.join(failed)}"


def _list_failures(broker: str, title: str, results: Mapping[str, Result]) -> Iterator[str]:
    yield f"## What failed on {title}, and why\n"
    lines = [line for result in results.values() for line in _failures_of(broker, result)]
    if lines:
        yield f"{FAILURES}\n"
    yield from lines or ["Nothing."]
    yield ""


def _failures_of(broker: str, result: Result) -> Iterator[str]:
    """Yield one line for each reason; steps that failed for the same reason share it."""
    cells = result["brokers"][broker]["cells"] if "brokers" in result else {}
    reasons: dict[str, list[str]] = {}
    for step, (outcome, why) in cells.items():
        if outcome == FAILED:
            reason = cells[PLAIN][1] if why == NOT_TRIED else why
            reasons.setdefault(make_plain(reason), []).append(step)
    for why, steps in reasons.items():
        yield f"- {result['title']}, {', '.join(steps)}: {why}"


def _not_installed(results: Mapping[str, Result]) -> Iterator[str]:
    lines = [
        f"- {result['title']}: {make_plain(result['not_installed'])}"
        for result in results.values()
        if "not_installed" in result
    ]
    if lines:
        yield "## Not tried\n"
        yield from lines
        yield ""


def _list_runs(results: Mapping[str, Result]) -> Iterator[str]:
    """List when, and on which version of this broker, each row was run; the run with most rows is not spelt out."""
    yield "## Runs\n"
    runs: dict[str, list[str]] = {}
    for result in results.values():
        runs.setdefault(f"{result['date']}, {result['broker_version']}", []).append(result["title"])
    for run, titles in sorted(runs.items(), key=lambda item: -len(item[1])):
        rest = "all" if len(runs) == 1 else "all others" if titles == max(runs.values(), key=len) else ", ".join(titles)
        yield f"- {run}: {rest} ({len(titles)} row{'s' if len(titles) > 1 else ''})"
    yield ""


def make_plain(words: str) -> str:
    """Keep a client's own words from being taken for markup, and on one line."""
    one_line = " ".join(words.split())
    return "".join(f"\\{character}" if character in "\\`*_<>|[]" else character for character in one_line)


__all__ = ["KAFKA", "OK", "OURS", "PAGE", "RESULTS", "lay_out_page", "load_results", "store_results"]
