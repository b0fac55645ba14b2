"""Runs a row: the contenders take turns, pair after pair, each pair in the opposite order of the one before."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from bench.row import (
    HEADER,
    KAFKA,
    OLD_KAFKA,
    RECORDS,
    AnyRow,
    ClusterRow,
    LibraryRow,
    Options,
    Samples,
    Served,
    ServedRow,
)
from compat_tests.brokers import Broker, KafkaBroker, KafkacompatBroker, OldKafkaBroker
from compat_tests.clusters import Cluster, KafkaCluster, KafkacompatCluster
from spark_integration.runtime.maven import BUILD

Results = dict[str, list[Samples]]
Tell = Callable[[str], None]
Make = Callable[[str, Path, Mapping[str, str]], Served]

# The JVM compiles hot code during these runs, before Kafka is measured.
WARM_UP_RUNS = 2

MOST_KEPT_BYTES = 1 << 30


# The JVM options of bin/kafka-server-start.sh.
KAFKA_JVM = (
    "-Xms1g",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)


class LongLivedKafkaBroker(KafkaBroker):
    """Apache Kafka as its own scripts start it."""

    JVM = KAFKA_JVM


class LongLivedOldKafkaBroker(OldKafkaBroker):
    """Apache Kafka 3.9.1 as its own scripts start it."""

    JVM = KAFKA_JVM


class LongLivedKafkaCluster(KafkaCluster):
    """Three nodes as Apache Kafka's own scripts start them, with half the heap: three of them share this machine."""

    JVM = tuple(option.replace("-Xms1g", f"-Xms{KafkaCluster.HEAP}") for option in KAFKA_JVM)


def make_broker(contender: str, folder: Path, properties: Mapping[str, str]) -> Broker:
    """Return a contender's broker, not started yet."""
    if contender == KAFKA:
        return LongLivedKafkaBroker(folder, properties)
    if contender == OLD_KAFKA:
        return LongLivedOldKafkaBroker(folder, properties)
    validation = {HEADER: "header", RECORDS: "records"}[contender]
    return KafkacompatBroker(folder, {**properties, "kafkacompat.produce.validation": validation})


def make_cluster(contender: str, folder: Path, properties: Mapping[str, str]) -> Cluster:
    """Return a contender's cluster, not started yet."""
    kind = {KAFKA: LongLivedKafkaCluster, RECORDS: KafkacompatCluster}[contender]
    return kind(folder, properties)


def run_row(row: AnyRow, options: Options, tell: Tell) -> Results:
    """Return each contender's figures, one entry for each pair; ``tell`` receives the progress in words."""
    if isinstance(row, LibraryRow):
        return _run_libraries(row, options, tell)
    with _make_folder() as folder:
        if isinstance(row, ClusterRow):
            return _run_served(row, make_cluster, options, folder, tell)
        return _run_served(row, make_broker, options, folder, tell)


def _run_served(row: ServedRow[Served], make: Make[Served], options: Options, folder: Path, tell: Tell) -> Results:
    run = _run_fresh if row.fresh else _run_kept
    return run(row, make, options, folder, tell)


@contextmanager
def _make_folder() -> Iterator[Path]:
    """Yield a folder on the disk of the build: a file system in memory would hide the cost of writing."""
    parent = BUILD / "bench"
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run_libraries(row: LibraryRow, options: Options, tell: Tell) -> Results:
    results: Results = {library: [] for library in row.libraries}
    for number in range(options.pairs):
        for library in _order_contenders(list(row.libraries), number):
            tell(f"run {number + 1}: {library}")
            results[library].append(row.libraries[library](options))
    return results


def _order_contenders(contenders: list[str], number: int) -> list[str]:
    return contenders if number % 2 == 0 else contenders[::-1]


def _run_fresh(row: ServedRow[Served], make: Make[Served], options: Options, folder: Path, tell: Tell) -> Results:
    results: Results = {contender: [] for contender in row.contenders}
    for number in range(options.pairs):
        for contender in _order_contenders(list(row.contenders), number):
            tell(f"pair {number + 1}: {contender}")
            broker = make(contender, folder / f"{number}-{row.contenders.index(contender)}", row.properties)
            results[contender].append(row.measure(broker, options))
            _make_room(broker.folder)
    return results


def _make_room(folder: Path) -> None:
    """Remove a run's data if it is large: the disk does not have space for the data of all runs together.

    Smaller data stays until the row is over, because ext4 creates files slowly where others were removed in the last half minute.
    """
    if sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) > MOST_KEPT_BYTES:
        shutil.rmtree(folder)


def _run_kept(row: ServedRow[Served], make: Make[Served], options: Options, folder: Path, tell: Tell) -> Results:
    results: Results = {contender: [] for contender in row.contenders}
    warm_up = replace(
        options,
        rate=500.0,
        cold_gigabytes=min(0.5, options.cold_gigabytes),
        backlog_gigabytes=min(0.1, options.backlog_gigabytes),
    )
    with ExitStack() as stack:
        brokers = {
            contender: stack.enter_context(make(contender, folder / str(number), row.properties))
            for number, contender in enumerate(row.contenders)
        }
        for contender, broker in brokers.items():
            for _ in range(WARM_UP_RUNS):
                tell(f"warming up: {contender}")
                row.measure(broker, warm_up)
        if row.calibrate is not None:
            options = replace(options, rate=row.calibrate(brokers[KAFKA], options))
        for number in range(options.pairs):
            for contender in _order_contenders(list(row.contenders), number):
                tell(f"pair {number + 1}: {contender}")
                results[contender].append(row.measure(brokers[contender], options))
    return results
