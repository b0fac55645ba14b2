"""The findings of an audit: how many of each kind, by place and topic, and the first few of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from spark_integration.audit.kinds import KINDS

Row = dict[str, Any]


# A finding lies in a partition, belongs to a producer, and reaches from a first offset or sequence to a last one.
# `note` holds the rest in words, and `count` is the number that the finding stands for.
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

    def add(self, place: str, findings: DataFrame) -> None:
        """Count the findings of a frame of `SCHEMA`, and keep the first of each kind."""
        total = sql.sum(sql.col("count").cast("decimal(38,0)")).alias("total")
        for row in findings.groupBy("topic", "kind").agg(total).collect():
            self.counts[place, row.topic, row.kind] += int(row.total)
        number = sql.row_number().over(Window.partitionBy("kind").orderBy(*ORDER))
        first = findings.withColumn("number", number).where(sql.col("number") <= self.limit).drop("number")
        for row in first.orderBy("kind", *ORDER).collect():
            self.keep(place, row.kind, {name: value for name, value in row.asDict().items() if name != "kind"})

    def keep(self, place: str, kind: str, row: Row) -> None:
        """Keep a finding in detail unless there are *limit* already; columns without a value are left out."""
        kept = self.details.setdefault(kind, [])
        if len(kept) < self.limit:
            kept.append({"place": place, **{name: value for name, value in row.items() if value is not None}})

    def of(self, place: str, topic: str) -> dict[str, int]:
        """Return the counts of a topic in a place, in the order of `KINDS`."""
        return {kind: count for kind in KINDS if (count := self.counts[place, topic, kind])}

    def total(self) -> dict[str, int]:
        """Return the counts over all places and topics, in the order of `KINDS`."""
        totals: Counter[str] = Counter()
        for (_, _, kind), count in self.counts.items():
            totals[kind] += count
        return {kind: totals[kind] for kind in KINDS if totals[kind]}


# By kind: the condition under which a row is a finding, and the columns of that finding.
Rules = Mapping[str, tuple[Column, Mapping[str, Column]]]


def find_by_rules(rows: DataFrame, rules: Rules, *, producer: Column | None = None) -> DataFrame:
    """Return the findings that *rules* make in rows that have `topic` and `partition`."""
    columns = [
        sql.when(condition, _finding_column(kind, values_by_name))
        for kind, (condition, values_by_name) in rules.items()
    ]
    findings = sql.filter(sql.array(*columns), lambda finding: finding.isNotNull())
    of = sql.lit(None).cast("string") if producer is None else producer
    rows_of_findings = rows.select("topic", "partition", of.alias("producer"), sql.inline(findings))
    return rows_of_findings.select(*COLUMNS)


def union_findings(frames: Mapping[str, DataFrame]) -> DataFrame:
    """Put frames of findings, each of one kind and without some of the columns, into one of `SCHEMA`."""
    filled = [_fill_columns(frame.withColumn("kind", sql.lit(kind))) for kind, frame in frames.items()]
    return reduce(DataFrame.unionByName, filled)


def _fill_columns(frame: DataFrame) -> DataFrame:
    missing = {name: sql.lit(None) for name in COLUMNS if name not in frame.columns}
    return frame.withColumns(missing).select(*(sql.col(name).cast(kind).alias(name) for name, kind in COLUMNS.items()))


def _finding_column(kind: str, values_by_name: Mapping[str, Column]) -> Column:
    values = {"kind": sql.lit(kind), "note": sql.lit(None), **values_by_name}
    names = ("kind", "first", "last", "count", "note")
    return sql.struct(*(values[name].cast(COLUMNS[name]).alias(name) for name in names))
