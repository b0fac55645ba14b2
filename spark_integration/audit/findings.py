"""What an audit has found: how many of each kind, by place and topic, and the first few of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from spark_integration.audit.kinds import KINDS, PROBLEMS, counted
from spark_integration.audit.table import show
from spark_integration.console import Summary

Row = dict[str, Any]


# What a frame of findings may tell of one: they lie in a partition, are of a producer, and go from a first offset or
# sequence to a last one; `note` says the rest in words. `count` is how many the finding stands for.
SCHEMA = (
    "kind string, topic string, partition int, producer string, first bigint, last bigint, count bigint, note string"
)
COLUMNS = dict(column.split() for column in SCHEMA.split(", "))
ORDER = ("topic", "partition", "producer", "first")


@dataclass
class Findings:
    """Collects findings; of each kind at most *limit* are kept in detail."""

    limit: int
    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    details: dict[str, list[Row]] = field(default_factory=dict)

    def add(self, place: str, found: DataFrame) -> None:
        """Count the findings of a frame of `SCHEMA`, and keep the first of each kind."""
        total = sql.sum(sql.col("count").cast("decimal(38,0)")).alias("total")
        for row in found.groupBy("topic", "kind").agg(total).collect():
            self.counts[place, row.topic, row.kind] += int(row.total)
        number = sql.row_number().over(Window.partitionBy("kind").orderBy(*ORDER))
        first = found.withColumn("number", number).where(sql.col("number") <= self.limit).drop("number")
        for row in first.orderBy("kind", *ORDER).collect():
            self.keep(place, row.kind, {name: value for name, value in row.asDict().items() if name != "kind"})

    def keep(self, place: str, kind: str, row: Row) -> None:
        """Keep a finding in detail, if there are not too many; what is not known of it is left out."""
        kept = self.details.setdefault(kind, [])
        if len(kept) < self.limit:
            kept.append({"place": place, **{name: value for name, value in row.items() if value is not None}})

    def of(self, place: str, topic: str) -> dict[str, int]:
        """Return the counts of a topic in a place, in the order of `KINDS`."""
        return {kind: count for kind in KINDS if (count := self.counts[place, topic, kind])}

    def total(self) -> dict[str, int]:
        """Return the counts over all places and topics, in the order of `KINDS`."""
        found: Counter[str] = Counter()
        for (_, _, kind), count in self.counts.items():
            found[kind] += count
        return {kind: found[kind] for kind in KINDS if found[kind]}


# What a row may be found to be: if the condition holds, it is a finding with these columns.
Rules = Mapping[str, tuple[Column, Mapping[str, Column]]]


def found_in(rows: DataFrame, rules: Rules, *, producer: Column | None = None) -> DataFrame:
    """Return the findings that *rules*, by kind, make in rows that have `topic` and `partition`."""
    each = [sql.when(condition, _finding(kind, told)) for kind, (condition, told) in rules.items()]
    findings = sql.filter(sql.array(*each), lambda one: one.isNotNull())
    of = sql.lit(None).cast("string") if producer is None else producer
    found = rows.select("topic", "partition", of.alias("producer"), sql.inline(findings))
    return found.select(*COLUMNS)


def as_findings(frames: Mapping[str, DataFrame]) -> DataFrame:
    """Put frames of findings, each of one kind and without some of the columns, into one of `SCHEMA`."""
    each = [_filled(frame.withColumn("kind", sql.lit(kind))) for kind, frame in frames.items()]
    return reduce(DataFrame.unionByName, each)


def _filled(frame: DataFrame) -> DataFrame:
    missing = {name: sql.lit(None) for name in COLUMNS if name not in frame.columns}
    return frame.withColumns(missing).select(*(sql.col(name).cast(kind).alias(name) for name, kind in COLUMNS.items()))


def _finding(kind: str, told: Mapping[str, Column]) -> Column:
    values = {"kind": sql.lit(kind), "note": sql.lit(None), **told}
    names = ("kind", "first", "last", "count", "note")
    return sql.struct(*(values[name].cast(COLUMNS[name]).alias(name) for name in names))


@dataclass(frozen=True)
class AuditSummary(Summary):
    """What an audit found; everything in it is plain data.

    *topics* has a row for each place and topic: `records`, `offsets` (of a topic), `producers`, `first_ms` and
    `last_ms` (of timestamps) and `found`, the counts by kind. *latency* has a row for each stage, in milliseconds.
    *producers* are those with most findings, then with most records. *windows* are counts by time, *details* the first of each kind.
    """

    verdict: str
    failed_on: list[str]
    found: dict[str, int]
    topics: list[Row]
    latency: list[Row]
    producers: list[Row]
    details: dict[str, list[Row]]
    notes: list[str]
    window_ms: int
    windows: list[Row]
    latency_windows: list[Row]

    @property
    def exit_code(self) -> int:
        """1 if what `--fail-on` names was found."""
        return 1 if self.failed_on else 0

    def show(self) -> None:
        """Print it on standard output: the verdict, a table, and the first of each kind."""
        show(self)


def verdict(found: Mapping[str, int], topics: list[Row], *, by_sequence: bool) -> str:
    """Say in one line what is wrong, or that nothing is."""
    names = {row["topic"] for row in topics}
    where = f"{_number(sum(row['records'] for row in topics), 'record')} in {_number(len(names), 'topic')}"
    if problems := [counted(kind, found[kind]) for kind in PROBLEMS if kind in found]:
        return f"PROBLEMS in {where}: {'; '.join(problems)}"
    if unknown := found.get("unexamined"):
        return f"UNSURE of {where}: {counted('unexamined', unknown)}; no problem in the rest"
    if by_sequence:
        cut = f" but for {counted('cut-sequence', found['cut-sequence'])}" if "cut-sequence" in found else ""
        return f"OK: {where}, no sequence missing, twice or out of order{cut}"
    return f"OK by offsets: {where}; --sequence-field would tell what producers sent"


def _number(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"
