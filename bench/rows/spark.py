"""Spark as the client: an archive written and replayed, and what of a micro-batch is the broker's share."""

from __future__ import annotations

import atexit
import functools
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

from bench.load import Load, produce
from bench.row import Goal, Options, Row, Samples, throughput_goals
from bench.topics import a_topic, record_count
from bench.usage import Usage
from compat_tests.brokers import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = 4
RECORD_BYTES = 200
# Of 16 KiB each, to every partition: a million records.
REQUESTS = 3200
MOST_OFFSETS = 500_000

SMALL_BATCHES = 60
SMALL_RECORDS = 100
# Of a micro-batch, as Spark reports them.
PARTS = ("latestOffset", "getBatch", "addBatch", "triggerExecution")


@functools.cache
def find_session() -> SparkSession:
    """Return the one session of this process: Spark's own start belongs to no figure."""
    from spark_integration.session import start_session

    spark = start_session("kafkacompat-bench", master="local[2]", say=lambda _: None)
    atexit.register(spark.stop)
    return spark


@contextmanager
def a_folder() -> Iterator[Path]:
    """Give a folder that goes with the block."""
    with tempfile.TemporaryDirectory(prefix="kafkacompat-bench-") as folder:
        yield Path(folder)


def make_source(broker: Broker, topic: str, **options: str) -> dict[str, str]:
    """Return Spark's options to read a topic from its beginning."""
    servers = {"kafka.bootstrap.servers": broker.bootstrap}
    return {**servers, "subscribe": topic, "startingOffsets": "earliest", **options}


def archive_topic(broker: Broker, topic: str, folder: Path) -> int:
    """Archive the topic's records; return their number."""
    from spark_integration.archive.pipeline import archive
    from spark_integration.queries.settings import StreamOptions

    options = make_source(broker, topic, maxOffsetsPerTrigger=str(MOST_OFFSETS))
    return archive(find_session(), options, str(folder / "archive"), StreamOptions(str(folder / "checkpoint"))).records


def fill_topic(broker: Broker, topic: str, options: Options) -> int:
    """Produce the records to be archived; return how many."""
    load = Load.of(record_bytes=RECORD_BYTES)
    return produce(broker.port, topic, load, partitions=PARTITIONS, requests=options.count(REQUESTS))


def measure_archive(broker: Broker, options: Options) -> Samples:
    """Archive a topic into a new archive."""
    with a_topic(broker, PARTITIONS) as topic, a_folder() as folder:
        records = fill_topic(broker, topic, options)
        with Usage(broker) as usage:
            archived = archive_topic(broker, topic, folder)
        assert archived == records, f"{records} records were produced and {archived} archived"
    return usage.samples(records, records * RECORD_BYTES)


def measure_replay(broker: Broker, options: Options) -> Samples:
    """Replay an archive into a topic that does not exist yet."""
    from spark_integration.replay.pipeline import replay
    from spark_integration.topics.names import TargetNames

    with a_topic(broker, PARTITIONS) as topic, a_topic(broker, PARTITIONS) as target, a_folder() as folder:
        records = fill_topic(broker, topic, options)
        archive_topic(broker, topic, folder)
        servers = {"kafka.bootstrap.servers": broker.bootstrap}
        with Usage(broker) as usage:
            replay(find_session(), str(folder / "archive"), servers, names=TargetNames(mapped={topic: target}))
        stored = record_count(broker, target, PARTITIONS)
        assert stored == records, f"{records} records were archived and {stored} replayed"
    return usage.samples(records, records * RECORD_BYTES)


def measure_micro_batches(broker: Broker, options: Options) -> Samples:
    """Run small batches one after another, each over what was produced since the one before."""
    load, count = Load.of(SMALL_RECORDS * (RECORD_BYTES + 8), RECORD_BYTES), options.count(SMALL_BATCHES)
    with a_topic(broker, PARTITIONS) as topic, a_folder() as folder:
        stream = find_session().readStream.format("kafka").options(**make_source(broker, topic)).load()
        writer = stream.writeStream.format("noop").option("checkpointLocation", str(folder))
        query = writer.trigger(processingTime="0 seconds").start()

        def one_batch() -> None:
            produce(broker.port, topic, load, partitions=PARTITIONS, requests=1, connections=1)
            query.processAllAvailable()

        try:
            one_batch()  # the first one plans, compiles and connects
            with Usage(broker) as usage:
                for _ in range(count):
                    one_batch()
            batches = [batch for batch in query.recentProgress if batch["numInputRows"]][1:]
        finally:
            query.stop()
    assert sum(batch["numInputRows"] for batch in batches) == count * PARTITIONS * load.records
    parts = {name: mean(batch["durationMs"][name] for batch in batches) for name in PARTS}
    return {
        "broker's share ms": parts["latestOffset"] + parts["getBatch"],
        **{f"{name} ms": value for name, value in parts.items()},
        "broker CPU ms per batch": usage.cpu_seconds / len(batches) * 1e3,
    }


KIND = "Spark 4.0, local[2], in one session that is started before;"
ROWS = [
    Row(
        "spark-archive",
        "Spark: an archive written",
        f"{KIND} a million records of {RECORD_BYTES} bytes in {PARTITIONS} partitions into Parquet by "
        "`kafkacompat spark archive`, half a million a batch.",
        measure_archive,
        throughput_goals(1.0, 0.5),
    ),
    Row(
        "spark-replay",
        "Spark: an archive replayed",
        f"{KIND} that archive into an empty topic by `kafkacompat spark replay`. The broker stores 350 MB in a few seconds: "
        "copying them into the page cache took a tenth of its time in one run and half of it in another, probably where the "
        "virtual machine had to be given the pages again. It is part of the figures of both.",
        measure_replay,
        throughput_goals(1.0, 0.5),
    ),
    Row(
        "spark-micro-batch",
        "Spark: small batches",
        f"{KIND} {SMALL_BATCHES} micro-batches of some {SMALL_RECORDS} records a partition. The broker's share is what Spark "
        "reports as latestOffset and getBatch: planning, which is asking for the ends of the partitions.",
        measure_micro_batches,
        [
            Goal("broker's share ms", 1.0, at_least=False),
            Goal("broker CPU ms per batch", 0.5, at_least=False),
        ],
    ),
]
