"""Writes docs/COMPATIBILITY.md and docs/compatibility.json from what runs found, this one and earlier ones."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from compat_tests.matrix.programme import FAILED, NOT_APPLICABLE, OK, STEPS

DOCS = Path(__file__).resolve().parents[2] / "docs"
RESULTS = DOCS / "compatibility.json"
PAGE = DOCS / "COMPATIBILITY.md"
OURS, KAFKA = "kafkacompat", "kafka"
KAFKA_TITLE = "Apache Kafka 4.3.1"

Result = Mapping[str, Any]
"""What a run found for one row: ``title``, ``date``, ``broker_version``, and either ``not_installed`` (why) or
``brokers``: OURS and KAFKA -> {"cells": step -> [outcome, why], "wire": summary, "versions": API -> versions}."""

INTRODUCTION = f"""# Which clients work

Written by `make matrix`; do not edit. Real clients, installed from their registries, each run the same programme on
this broker and on {KAFKA_TITLE}. **ok**: it did what it should. **failed**: it did not; why stands below.
n/a: the client never had the feature.

- *create*: make a topic, or have it made by asking for it.
- *none* to *zstd*: write 1,000 keyed records with that codec, read all of them back, compare keys, values, partitions
  and order; *headers* and *timestamps*: compare these too, for every codec.
- *group*: two members share four partitions, see every record, commit. *resume*: a consumer commits, closes, starts
  again, and goes on exactly there.
- *idempotent*: write with an idempotent producer. *transactions*: abort one, commit one, read the committed alone.
- *on the wire*: the versions of Produce and Fetch that the client used with this broker, and the formats of the record
  batches in them (magic), as a proxy between the two saw them. A batch in a newer format than the version of its
  request allows fails the step.

All that was seen is in [compatibility.json](compatibility.json).
"""


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
    yield from _table(results)
    yield from _failures(OURS, "this broker", results)
    yield from _failures(KAFKA, KAFKA_TITLE, results)
    yield from _not_installed(results)
    yield from _runs(results)


def _table(results: Mapping[str, Result]) -> Iterator[str]:
    yield f"| client | {' | '.join(STEPS)} | on the wire | {KAFKA_TITLE} |"
    yield f"|---|{'---|' * len(STEPS)}---|---|"
    for result in results.values():
        if "brokers" in result:
            ours = result["brokers"][OURS]
            cells = [_mark(ours["cells"][step][0]) for step in STEPS]
            yield f"| {' | '.join([result['title'], *cells, ours['wire'], in_short(result['brokers'][KAFKA])])} |"
    yield ""


def _mark(outcome: str) -> str:
    return f"**{outcome}**" if outcome == FAILED else outcome


def in_short(broker: Result) -> str:
    """Return all cells of one broker in a few words: ``all ok``, ``all failed``, or which failed."""
    outcomes = {step: outcome for step, (outcome, _) in broker["cells"].items() if outcome != NOT_APPLICABLE}
    failed = [step for step, outcome in outcomes.items() if outcome == FAILED]
    if not failed:
        return "all ok"
    return "**all failed**" if len(failed) == len(outcomes) else f"**failed:** {', '.join(failed)}"


def _failures(broker: str, title: str, results: Mapping[str, Result]) -> Iterator[str]:
    yield f"## What failed on {title}, and why\n"
    lines = [line for result in results.values() for line in _failures_of(broker, result)]
    yield from lines or ["Nothing."]
    yield ""


def _failures_of(broker: str, result: Result) -> Iterator[str]:
    """Yield one line for each reason: steps that failed for the same one share it."""
    reasons: dict[str, list[str]] = {}
    for step, (outcome, why) in result.get("brokers", {}).get(broker, {"cells": {}})["cells"].items():
        if outcome == FAILED:
            reasons.setdefault(_plain(why), []).append(step)
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
    """Tell when and of which version of this broker each row was run."""
    yield "## When\n"
    runs: dict[str, list[str]] = {}
    for result in results.values():
        runs.setdefault(f"{result['date']}, {result['broker_version']}", []).append(result["title"])
    for run, titles in sorted(runs.items()):
        yield f"- {run}: {'all' if len(runs) == 1 else ', '.join(titles)} ({len(titles)} rows)"


def _plain(words: str) -> str:
    """Keep a client's own words from being taken for markup, and on one line."""
    one_line = " ".join(words.split())
    shown = one_line if len(one_line) <= 400 else f"{one_line[:397]}..."
    return "".join(f"\\{character}" if character in "\\`*_<>|[]" else character for character in shown)


__all__ = ["KAFKA", "OK", "OURS", "PAGE", "RESULTS", "load", "page", "store"]
