"""Runs the demo and compares its three counts."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from spark_integration.demo.consume import FlightCounts, consume_flights
from spark_integration.demo.delays import DelaysResult, run_delays_query
from spark_integration.demo.flights import EXPECTED, Flight, load_flights
from spark_integration.demo.produce import create_topic, produce_flights
from spark_integration.errors import PipelineError
from spark_integration.runtime.local_broker import run_broker
from spark_integration.runtime.maven import BUILD, MissingProgramError, find_program
from spark_integration.session import start_session

FOLDER = BUILD / "demo"
SHOWN_ROWS = 12


@contextmanager
def show_flight_bar(console: Console, words: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar; the block advances it by calling the function with a count."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(words, total=total)

        def advance(count: int) -> None:
            progress.advance(task, count)

        yield advance


def print_plain(console: Console, line: str) -> None:
    """Print a line as it is; the terminal wraps it."""
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def counts_table(title: str, column: str, counts: Counter[str]) -> Table:
    """Lay out counts, the largest first."""
    table = Table(column, "flights", title=title)
    for name, count in counts.most_common():
        table.add_row(name, f"{count:,}")
    return table


def delays_table(rows: list[Any]) -> Table:
    """Lay out the worst hours that have at least 100 flights."""
    table = Table(
        "carrier", "hour", "flights", "average delay", "longest", title="Delays in minutes, worst hours first"
    )
    for row in [row for row in rows if row.flights >= 100][:SHOWN_ROWS]:
        table.add_row(
            row.carrier, f"{row.hour}:00", f"{row.flights:,}", f"{row.average_delay:.1f}", f"{row.longest_delay:.0f}"
        )
    return table


def consume_step(console: Console, bootstrap: str) -> FlightCounts:
    """Consume with a group of three members, and show how many flights each of them got."""
    with show_flight_bar(console, "Consuming with kafka-python, 3 members", EXPECTED) as advance:
        counts = consume_flights(bootstrap, EXPECTED, advance)
    console.print(counts_table("By member", "member", counts.by_member))
    console.print(counts_table("By carrier", "carrier", counts.by_carrier))
    return counts


def spark_step(console: Console, bootstrap: str) -> DelaysResult:
    """Run the streaming query and show its table."""
    with console.status("Starting Spark ..."):
        spark = start_session("kafkacompat-demo", say=lambda line: print_plain(console, line))
    try:
        with console.status("Spark processes the topic ..."):
            result = run_delays_query(spark, bootstrap, FOLDER)
    finally:
        spark.stop()
    console.print(delays_table(result.rows))
    print_plain(console, f"{len(result.rows)} rows of carrier and hour in {FOLDER / 'delays.parquet'}")
    return result


def run_demo(console: Console, flights: list[Flight]) -> dict[str, int]:
    """Take the flights through all three steps; return the count of each step."""
    with run_broker(FOLDER) as bootstrap:
        print_plain(console, f"The broker serves on {bootstrap}; its log is {FOLDER / 'broker.log'}")
        create_topic(bootstrap)
        with show_flight_bar(console, "Producing with confluent-kafka", EXPECTED) as advance:
            produced = produce_flights(bootstrap, flights, advance)
        consumed = consume_step(console, bootstrap).total
        processed = spark_step(console, bootstrap).processed
    return {"produced": produced, "consumed": consumed, "processed by Spark": processed}


def main() -> int:
    """Run the demo; exit code 1 unless all three counts are the number of flights."""
    console = Console()
    try:
        find_program("java")
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)
        with console.status("Reading the flights ..."):
            flights = load_flights()
        counts = run_demo(console, flights)
    except (MissingProgramError, PipelineError) as problem:
        console.print(str(problem), style="red", markup=False, soft_wrap=True)
        return 1
    for step, count in counts.items():
        console.print(f"{'[green]' if count == EXPECTED else '[red]'}{count:>9,} {step}")
    return 0 if set(counts.values()) == {EXPECTED} else 1


if __name__ == "__main__":
    sys.exit(main())
