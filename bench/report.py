"""Writes docs/BENCHMARKS.md from all stored results, of this run and of earlier ones."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import machine
from bench.row import KAFKA, OLD_KAFKA, AnyRow, ClusterRow, Goal
from bench.rows import ROWS
from bench.runner import Results
from bench.summary import format_figure, summarize_results
from bench.verdict import Spread, compute_ratios, judge_spread

DOCS = Path(__file__).resolve().parent.parent / "docs"
RESULTS = DOCS / "benchmarks.json"
REPORT = DOCS / "BENCHMARKS.md"
PLOT = DOCS / "benchmarks.svg"

ARTICLE = "Kafka 0.8.1, article of 2014"
"""Name of the column with the published figures."""

INTRODUCTION = f"""# Benchmarks

This page compares kafkacompat with {KAFKA} under the same loads on one machine. `make bench` measures and writes it; do not
edit. All samples are in [benchmarks.json](benchmarks.json).

**Contents:** [In short](#in-short) · [How it is measured](#how-it-is-measured) · [Goals](#goals) · the rows, from
[Raw produce](#raw-produce) on · [Machine and versions](#machine-and-versions)
"""

METHOD = f"""## How it is measured

- **Contenders.** *kafkacompat* checks every record of a batch, as it does by default. *kafkacompat, header validation* runs with
  `kafkacompat.produce.validation=header`, which checks a batch's header alone. {OLD_KAFKA} is the last release that converts
  records for old clients.
- **Pairs.** All contenders run at once on one machine, and each has warmed up with the same load twice; the text of a row
  names exceptions. They are measured in turn. Each pair of runs gives one ratio. Runs with scaled loads say so: these loads
  are shorter than the full ones by that factor.
  Rows were measured on different days ([Machine and versions](#machine-and-versions)), and the machine is not equally fast on all
  of them: compare absolute figures within a row only.
- **Goals.** A goal is *reached* if the median ratio reaches it, *missed* if the whole interquartile range lies on the wrong
  side, and *undecided* otherwise.
- **Cost.** Client and broker share the machine's cores; nothing is pinned. CPU seconds are user plus system time of the
  broker's process during the load. Resident memory is read at its end.
- **Three nodes.** Here three brokers of a kind share the machine with their clients. kafkacompat's have a ZooKeeper, whose cost
  is shown apart. {KAFKA} runs in KRaft mode, each node broker and controller, with a heap of 512 MB. The rows are those of
  LinkedIn's benchmark of 2014, whose figures stand beside: {ARTICLE}. It
  had six machines with six cores, six disks and 32 GB each and a network of 1 Gb/s: three for brokers, three for ZooKeeper and
  clients, and each of its runs had 50 million records. Here everything shares a few cores and no network limits it, and the loads
  are shorter, so compare the columns of one machine with each other, and not with the article's.

The plot shows each row's ratio to Kafka with its quartiles, on a logarithmic axis: 0.5 lies as far from 1 as 2.

![Ratios to Kafka, on a logarithmic axis](benchmarks.svg)
"""


def load_results() -> dict[str, Any]:
    """Return the stored results: row name -> {{"machine": …, "results": …}}."""
    return dict(json.loads(RESULTS.read_text())) if RESULTS.exists() else {}


def add_result(name: str, results: Results, note: str) -> None:
    """Store a row's figures beside those of the other rows."""
    stored = load_results()
    stored[name] = {"machine": machine.describe_machine(), "note": note, "results": results}
    DOCS.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(stored, indent=1) + "\n")


def write_report() -> None:
    """Write the report over all stored results."""
    stored = load_results()
    sections = [INTRODUCTION, *summarize_results(stored), METHOD, *goals_table(stored)]
    for row in ROWS.values():
        if row.name in stored:
            sections += row_section(row, stored[row.name])
    sections += machine_section(stored)
    REPORT.write_text("\n".join(sections) + "\n")


def goal_spread(goal: Goal, results: Mapping[str, Sequence[Mapping[str, float]]]) -> Spread:
    """Return the spread by which a goal is judged: of its ratios, or of its figures."""
    ours = [sample[goal.metric] for sample in results[goal.contender]]
    if not goal.is_ratio:
        return Spread.of(ours)
    return Spread.of(compute_ratios(ours, [sample[goal.metric] for sample in results[KAFKA]]))


def judge_goal(goal: Goal, results: Mapping[str, Sequence[Mapping[str, float]]]) -> str:
    """Return a goal's verdict in one word."""
    return judge_spread(goal_spread(goal, results), goal.bound, at_least=goal.at_least)


def goals_table(stored: Mapping[str, Any]) -> Iterator[str]:
    """Lay out every goal with its measured spread and its verdict."""
    yield "## Goals\n"
    yield "| row | goal | median | quartiles | verdict |"
    yield "|---|---|--:|--:|---|"
    for row in ROWS.values():
        for goal in row.goals if row.name in stored else ():
            results = stored[row.name]["results"]
            spread = goal_spread(goal, results)
            quartiles = f"{format_figure(spread.low)} to {format_figure(spread.high)}"
            cells = (
                row.title,
                goal.sentence(),
                format_figure(spread.middle),
                quartiles,
                f"**{judge_goal(goal, results)}**",
            )
            yield f"| {' | '.join(cells)} |"
    yield ""


def row_section(row: AnyRow, stored: Mapping[str, Any]) -> Iterator[str]:
    """Lay out one row: medians and quartiles of every metric."""
    results: dict[str, list[dict[str, float]]] = stored["results"]
    first = next(iter(results.values()))
    yield f"## {row.title}\n"
    yield f"{row.about}{stored['note']} {len(first)} {'pairs' if KAFKA in results else 'runs each'}; median (quartiles).\n"
    article = row.article if isinstance(row, ClusterRow) else {}
    columns = [*results, *([ARTICLE] if article else [])]
    yield f"| | {' | '.join(columns)} |"
    yield f"|---|{'--:|' * len(columns)}"
    for metric in first[0]:
        spreads = [Spread.of([sample[metric] for sample in samples]) for samples in results.values()]
        cells = [
            f"{format_figure(spread.middle)} ({format_figure(spread.low)} to {format_figure(spread.high)})"
            for spread in spreads
        ]
        if article:
            cells.append(format_figure(article[metric]) if metric in article else "")
        yield f"| {metric} | {' | '.join(cells)} |"
    yield ""


def machine_section(stored: Mapping[str, Any]) -> Iterator[str]:
    """List the machine and versions of each row; rows of one run share a line."""
    yield "## Machine and versions\n"
    groups: dict[str, list[str]] = {}
    for name in ROWS:
        if name in stored:
            words = "; ".join(f"{label} {value}" for label, value in stored[name]["machine"].items())
            groups.setdefault(words, []).append(name)
    for words, names in groups.items():
        yield f"- {', '.join(names)}: {words}"
