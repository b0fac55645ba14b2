"""``python -m compat_tests.nasty [rows]``: the matrix's clients read nasty topics; docs/testing/nasty.md records what they did."""

from __future__ import annotations

import argparse
import datetime
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

import kafkacompat.testing
from compat_tests.matrix.install import NotInstalledError, try_installing
from compat_tests.matrix.rows import ROWS, Row
from compat_tests.matrix.run import broker_version, run_folder
from compat_tests.nasty import report
from compat_tests.nasty.shapes import SHAPES, Shape
from compat_tests.nasty.trial import Client, Trial
from kafkacompat.testing.nasty import ExpectedRecord
from kafkacompat.testing.nasty.broker_access import BrokerAccess
from kafkacompat.testing.nasty.partition_writer import PartitionWriter

FEW = (
    "java-0.8.2.2",
    "java-0.9.0.1",
    "java-0.10.2.2",
    "java-0.11.0.3",
    "java-2.8.2",
    "java-4.3.1",
    "kafka-python-1.4.7",
    "kafka-python-2.0.2",
    "kafka-python-3.0.12",
    "librdkafka-0.11.1",
    "confluent-kafka-1.9.2",
    "confluent-kafka-2.16.1",
    "aiokafka-0.7.2",
    "aiokafka-0.14.0",
    "kcat",
    "sarama-1.23.1",
    "sarama-1.61.1",
    "kafka-go-0.4.51",
    "franz-go-1.7.0",
    "franz-go-1.22.2",
    "kafkajs-1.16.0",
    "kafkajs-2.2.4",
    "rskafka-0.6.0",
    "rdkafka-0.39.0",
)
"""Rows that are run by default: of each family the oldest and the newest, and those between that changed most."""

SPARK = "spark"
ORDER = (*ROWS, SPARK)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="nasty", description=__doc__, epilog=f"Rows: {', '.join(ORDER)}")
    parser.add_argument(
        "rows", nargs="*", help=f"rows to run, or how their names begin ({len(FEW)} of all ages, and spark)"
    )
    parser.add_argument("--topics", nargs="+", choices=SHAPES, default=list(SHAPES), help="topics to read (all)")
    parser.add_argument("--dry", action="store_true", help="print the outcome, write nothing")
    return parser.parse_args(arguments)


def select_rows(prefixes: Sequence[str]) -> list[str]:
    """Return the rows whose names begin with one of *prefixes*; a full name selects this row only. The default is FEW and Spark.

    SystemExit for a prefix without rows.
    """
    for prefix in prefixes:
        if not any(name.startswith(prefix) for name in ORDER):
            sys.exit(f"no row begins with '{prefix}'; rows: {', '.join(ORDER)}")
    if not prefixes:
        return [name for name in ORDER if name in (*FEW, SPARK)]
    exact = {prefix for prefix in prefixes if prefix in ORDER}
    others = tuple(set(prefixes) - exact)
    return [name for name in ORDER if name in exact or name.startswith(others)]


def make_appender(kafka: Any) -> Callable[[str], ExpectedRecord]:
    """Return a function that appends one record to partition 0 of a topic."""
    access = BrokerAccess(lambda: [kafka.broker])

    async def append(topic: str) -> ExpectedRecord:
        writer = await PartitionWriter.open(access, topic)
        (record,) = await writer.append([(access.now_ms(), b"last", b"last", ())])
        return record

    return lambda topic: kafka.call(append, topic)


def run_row(row: Row, trial: Trial, shapes: Sequence[Shape], tell: Callable[[str], None]) -> report.Result:
    """Return the result of one client."""
    result: report.Result = {
        "title": row.title,
        "date": f"{datetime.date.today()}",
        "broker_version": broker_version(),
    }
    tell("installing")
    try:
        launch = try_installing(row.install)
    except NotInstalledError as problem:
        return {**result, "not_installed": str(problem)}
    client = Client(row.name, launch, "timestamps" in row.features, "transactions" in row.features)
    topics = {}
    for shape in shapes:
        tell(shape.name)
        topics[shape.name] = {} if is_beyond(row.name, shape) else trial.run(client, shape)
    return {**result, "topics": topics}


def is_beyond(name: str, shape: Shape) -> bool:
    """Return whether a topic is too large for a client: kafka-go and rskafka have connections of their own for each partition."""
    return name.startswith(("kafka-go", "rskafka")) and shape.name == "many_partitions"


def run_spark(kafka: Any, shapes: Sequence[Shape], tell: Callable[[str], None]) -> report.Result:
    """Return the result of Spark's source."""
    from compat_tests.nasty.spark import SparkTrial

    return SparkTrial(kafka, make_appender(kafka), tell).run(shapes)


def show_result(console: Console, result: report.Result, seconds: float) -> None:
    """Print a row's outcome."""
    console.print(f"[bold]{escape(result['title'])}[/]  {seconds:.0f} s")
    if "not_installed" in result:
        console.print(f"  not tried: {escape(result['not_installed'])}")
    for shape, outcomes in result.get("topics", {}).items():
        for isolation, problem in outcomes.items():
            console.print(f"  {shape}, {isolation}: " + (f"[red]{escape(problem)}[/]" if problem else "ok"))


def merge_topics(before: report.Result | None, result: report.Result) -> report.Result:
    """Return a result with the topics that were tried before and not again."""
    if before is None or "topics" not in before or "topics" not in result:
        return result
    return {**result, "topics": {**before["topics"], **result["topics"]}}


def main(arguments: Sequence[str]) -> int:
    """Run the rows one after another; each is stored as soon as it is done."""
    settings = parse_arguments(arguments)
    names, shapes = select_rows(settings.rows), [SHAPES[name] for name in settings.topics]
    console = Console(highlight=False)
    with (
        run_folder() as folder,
        kafkacompat.testing.broker(log_segment_delete_delay_ms=1000) as kafka,
        console.status("starting") as status,
    ):
        trial = Trial(kafka, folder, make_appender(kafka))
        for number, name in enumerate(names, start=1):
            begun_s = time.monotonic()

            def tell(words: str, where: str = f"{number} of {len(names)}: {name}") -> None:
                status.update(f"{where}: {words}")

            result = run_spark(kafka, shapes, tell) if name == SPARK else run_row(ROWS[name], trial, shapes, tell)
            show_result(console, result, time.monotonic() - begun_s)
            if not settings.dry:
                stored = report.load_results()
                report.store_results({**stored, name: merge_topics(stored.get(name), result)}, ORDER)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
