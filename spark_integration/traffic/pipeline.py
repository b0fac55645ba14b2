"""The pipeline `traffic`: every instance is simulated by itself, on an executor."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from spark_integration.errors import PipelineError
from spark_integration.queries.bars import show_job_bar
from spark_integration.runtime.settings import is_local
from spark_integration.traffic.demand import MOVING, RECORDED, Demand, make_demand, read_demand
from spark_integration.traffic.plots import draw_plots
from spark_integration.traffic.settings import ALGORITHMS, COLUMNS, PARTITIONS, TrafficSettings
from spark_integration.traffic.shipping import ship_rules
from spark_integration.traffic.simulation import Outcome, simulate
from spark_integration.traffic.summary import FIGURES, TrafficSummary, format_table, summarize

SLICES_A_CORE = 8
PICTURE, DATA, TABLE = "traffic-simulation.png", "traffic-simulation.json", "traffic-simulation.md"


def simulate_traffic(spark: SparkSession, settings: TrafficSettings) -> TrafficSummary:
    """Simulate each instance under each algorithm, and write plots, figures and the table if wanted. Raises PipelineError."""
    if not is_local(spark.sparkContext.master):
        ship_rules(spark)
    with show_job_bar(spark, "traffic"):
        demands = _read_demands(spark, settings) if settings.path else _make_demands(spark, settings)
        interval_ms = settings.interval_ms
        outcomes: list[Outcome] = demands.flatMap(
            lambda demand: [simulate(demand, algorithm, interval_ms) for algorithm in ALGORITHMS]
        ).collect()
    if not outcomes:
        raise PipelineError(f"{settings.path} has no rows: give a file with the columns {','.join(COLUMNS)}")
    figures = summarize(outcomes)
    files: tuple[str, ...] = ()
    if settings.output:
        example = _choose_example(demands, outcomes, settings)
        files = _write(Path(settings.output), settings, outcomes, example, figures)
    return TrafficSummary(len(outcomes) // len(ALGORITHMS), figures, files)


def _make_demands(spark: SparkSession, settings: TrafficSettings) -> Any:
    brokers, seconds, seed = settings.brokers, settings.seconds, settings.seed
    context = spark.sparkContext
    slices = min(settings.instances, context.defaultParallelism * SLICES_A_CORE)
    numbers = context.parallelize(range(settings.instances), slices)
    return numbers.map(lambda number: make_demand(number, brokers, seconds, seed))


def _read_demands(spark: SparkSession, settings: TrafficSettings) -> Any:
    frame = spark.read.csv(str(settings.path), header=True)
    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing:
        raise PipelineError(f"{settings.path} has no column {missing[0]}: its header is {','.join(COLUMNS)}")
    has_partitions = PARTITIONS in frame.columns

    def read(row: Any) -> tuple[str, tuple[str, int, float, float, int]]:
        count = int(row[PARTITIONS]) if has_partitions else 1
        return row.instance, (row.broker, int(row.second), float(row.bytes), float(row.limit_bytes), count)

    return frame.rdd.map(read).groupByKey().map(lambda group: read_demand(*group))


def _choose_example(demands: Any, outcomes: Iterable[Outcome], settings: TrafficSettings) -> Demand:
    """Return the demand of the instance that is plotted: one whose traffic moves, or the first recorded one."""
    kind = RECORDED if settings.path else MOVING
    names = sorted(outcome.instance for outcome in outcomes if outcome.kind == kind)
    example: Demand = demands.filter(lambda demand: demand.instance == names[0]).first() if names else demands.first()
    return example


def _write(
    folder: Path, settings: TrafficSettings, outcomes: list[Outcome], example: Demand, figures: Any
) -> tuple[str, ...]:
    folder.mkdir(parents=True, exist_ok=True)
    of_example = {outcome.algorithm: outcome for outcome in outcomes if outcome.instance == example.instance}
    draw_plots(outcomes, example, of_example, folder / PICTURE)
    described = {
        name: getattr(settings, name) for name in ("path", "instances", "brokers", "seconds", "interval_ms", "seed")
    }
    data = {"settings": described, "meaning": FIGURES, "figures": figures}
    (folder / DATA).write_text(json.dumps(data, indent=1) + "\n")
    (folder / TABLE).write_text("\n".join(format_table(figures)) + "\n")
    return tuple(str(folder / name) for name in (PICTURE, DATA, TABLE))
