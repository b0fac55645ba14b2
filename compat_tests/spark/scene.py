"""Helpers of all tests with Spark: they fill topics, read batches, run streams, and record observations."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import pyspark
from confluent_kafka import OFFSET_BEGINNING, KafkaError, Producer, TopicPartition
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, StreamingQueryException

from compat_tests.brokers import Broker
from compat_tests.clusters import Cluster
from compat_tests.confluent import consumer_of, create_topic
from compat_tests.waiting import until

# The identity of a record: its partition, its offset and its value as text.
Record = tuple[int, int, str | None]
PLACE = ("partition", "offset", "value")
Seen = TypeVar("Seen")
STREAM_TIMEOUT_SECONDS = 240
# From 4.0 on the source reports failures as conditions, and knows `maxRecordsPerPartition`.
IS_SPARK_4 = int(pyspark.__version__.split(".")[0]) >= 4


@dataclass
class Scene:
    """One test's part of a broker and of a Spark session; ``topic`` and all names that begin with it are its own."""

    session: Any
    broker: Broker
    topic: str
    folder: Path
    seen: dict[str, Any] = field(default_factory=dict)
    queries: list[Query] = field(default_factory=list)

    def note(self, name: str, value: Seen) -> Seen:
        """Record an observation, to be compared with that on another broker, and return it."""
        assert name not in self.seen, f"two observations are called {name}"
        self.seen[name] = plain_value(value)
        return value

    def on(self, broker: Broker) -> Scene:
        """Return the same scene on a broker of the test's own."""
        return replace(self, broker=broker)

    def with_conf(self, **conf: str) -> Scene:
        """Return the same scene with a session of other SQL configs; two underscores in a name stand for a dot."""
        session = self.session.newSession()
        for key, value in conf.items():
            session.conf.set(key.replace("__", "."), value)
        return replace(self, session=session)

    def create(self, partitions: int = 1, topic: str = "", **config: str) -> None:
        create_topic(self.broker, topic or self.topic, partitions, **config)

    def fill(self, values: Mapping[int, Sequence[str]], topic: str = "", **options: Any) -> set[Record]:
        """Produce values into partitions; return the places that the broker reported."""
        return produce_values(self.broker, topic or self.topic, values, **options)

    def batch(self, **options: str) -> Any:
        """Return the frame of a batch read, by default of the scene's topic from its beginning."""
        return self._source(self.session.read, options)

    def stream(self, **options: str) -> Any:
        """Return the frame of a stream, by default of the scene's topic from its beginning."""
        return self._source(self.session.readStream, options)

    def run(self, frame: Any, **how: Any) -> Query:
        """Start a query over a stream; *how* are a Query's options and a trigger, by default an immediate one."""
        options = {name: how.pop(name) for name in ("checkpoint", "columns", "on_batch") if name in how}
        self.queries.append(Query(frame, self.folder, how, **options))
        return self.queries[-1]

    def run_to_the_end(self, frame: Any, **how: Any) -> Query:
        """Run a query over the existing records, by default with AvailableNow."""
        query = self.run(frame, **(how if "once" in how else {"availableNow": True, **how}))
        query.finish()
        return query

    def _source(self, reader: Any, options: dict[str, str]) -> Any:
        options = {"kafka.bootstrap.servers": self.broker.bootstrap, **options}
        if not options.keys() & {"subscribe", "subscribePattern", "assign"}:
            options["subscribe"] = self.topic
        if not any(name.startswith("starting") for name in options):
            options["startingOffsets"] = "earliest"
        return reader.format("kafka").options(**options).load()


class Query:
    """A streaming query whose micro-batches arrive in this process.

    ``batches`` holds the records of each by its number: a repeated one replaces the first.
    """

    def __init__(
        self,
        frame: Any,
        folder: Path,
        trigger: Mapping[str, Any],
        checkpoint: str = "checkpoint",
        columns: Sequence[str] = PLACE,
        on_batch: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.batches: dict[int, list[Any]] = {}
        self.problem: Exception | None = None
        self.columns = columns
        self.on_batch = on_batch
        self.checkpoint = folder / checkpoint
        writer = frame.writeStream.foreachBatch(self._keep).option("checkpointLocation", str(self.checkpoint))
        self.query = (writer.trigger(**trigger) if trigger else writer).start()

    def _keep(self, frame: Any, number: int) -> None:
        try:
            self.on_batch(number)
            self.batches[number] = collect_rows(frame, self.columns)
        except Exception as problem:
            self.problem = problem
            raise

    def records(self) -> set[Any]:
        """Return the records of all micro-batches; AssertionError if one arrived twice."""
        return check_distinct([record for number in sorted(self.batches) for record in self.batches[number]])

    def wait_for(self, wanted: set[Any]) -> None:
        """Wait until these records have arrived, and no micro-batch is running."""
        self.wait_until(lambda: self.records() >= wanted)
        self.query.processAllAvailable()

    def wait_until(self, check: Callable[[], Any]) -> None:
        """Wait until *check* returns true; raises the query's failure."""
        until(lambda: not self.query.isActive or check(), timeout_seconds=STREAM_TIMEOUT_SECONDS)
        if not self.query.isActive:
            self.finish()
            assert check(), f"the query has ended with {self.batches}"

    def finish(self) -> None:
        """Wait until the query ends by itself; raises a micro-batch's failure, else pyspark's StreamingQueryException."""
        try:
            assert self.query.awaitTermination(STREAM_TIMEOUT_SECONDS), "the query does not end"
        except StreamingQueryException as problem:
            raise self.problem or problem from None

    def stop(self) -> None:
        self.query.stop()

    def progress(self) -> list[dict[str, Any]]:
        """Return Spark's own report of each trigger."""
        return progress_of(self.query)

    def ranges(self) -> list[dict[str, Any]]:
        """Return the offsets at which each micro-batch began and ended, by topic and partition."""
        # Spark 3.5 does not report how long a batch took.
        finished = [entry for entry in self.progress() if entry.get("batchDuration", 0) >= 0]
        sources = {entry["batchId"]: entry["sources"][0] for entry in finished}
        return [
            {"from": sources[number]["startOffset"], "to": sources[number]["endOffset"]}
            for number in sorted(sources)
            if number in self.batches
        ]


def progress_of(query: Any) -> list[dict[str, Any]]:
    """Return Spark's reports of a query's triggers, whose form differs between releases of pyspark."""
    return [json.loads(entry.json()) for entry in query._jsq.recentProgress()]


def collect_rows(frame: Any, columns: Sequence[str] = PLACE) -> list[Any]:
    """Collect these columns; binary ones as text."""
    texts = [f"cast({name} as string) as {name}" if name in {"key", "value"} else name for name in columns]
    return [tuple(row) for row in frame.selectExpr(*texts).collect()]


def collect_records(frame: Any, columns: Sequence[str] = PLACE) -> set[Any]:
    """Collect a batch; AssertionError if it holds a record twice."""
    return check_distinct(collect_rows(frame, columns))


def check_distinct(items: Sequence[Any]) -> set[Any]:
    assert len(set(items)) == len(items), f"twice: {sorted(item for item in set(items) if items.count(item) > 1)}"
    return set(items)


def produce_values(
    broker: Broker | Cluster, topic: str, values: Mapping[int, Sequence[str]], timestamp: int = 0, **settings: Any
) -> set[Record]:
    """Produce values into partitions, at *timestamp* (ms since 1970; 0: now)."""
    acknowledged: set[Record] = set()

    def delivered(error: Any, message: Any) -> None:
        assert error is None, error
        acknowledged.add((message.partition(), message.offset(), message.value().decode()))

    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5, **settings})
    for partition, texts in values.items():
        for text in texts:
            producer.produce(topic, value=text, partition=partition, timestamp=timestamp, on_delivery=delivered)
    assert producer.flush(60) == 0
    return acknowledged


def read_stored(broker: Broker | Cluster, topic: str) -> set[Record]:
    """Return the records that a plain consumer reads in a topic, from its beginning to its end."""
    consumer = consumer_of(broker, f"{topic}-reader", **{"enable.partition.eof": True})
    places = [
        TopicPartition(topic, part, OFFSET_BEGINNING) for part in consumer.list_topics(topic).topics[topic].partitions
    ]
    consumer.assign(places)
    records: set[Record] = set()
    ended = 0
    while ended < len(places):
        message = consumer.poll(30)
        assert message is not None, f"{topic} has no end"
        if (error := message.error()) is None:
            value = message.value()
            records.add((message.partition(), message.offset(), None if value is None else value.decode()))
        else:
            assert error.code() == KafkaError._PARTITION_EOF, error
            ended += 1
    consumer.close()
    return records


def make_values(count: int, partitions: int = 1, start: int = 0) -> dict[int, list[str]]:
    """Return *count* values for each partition, which all differ."""
    return {part: [f"{part}/{number}" for number in range(start, start + count)] for part in range(partitions)}


def plain_value(value: Any) -> Any:
    """Return a value as JSON has it, with sets in order."""
    if isinstance(value, (set, frozenset)):
        return sorted((plain_value(item) for item in value), key=repr)
    if isinstance(value, (list, tuple)):
        return [plain_value(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): plain_value(content) for key, content in value.items()}
    return value


def catch_failure(action: Callable[[], Any]) -> list[str]:
    """Do something that must fail, and return the Java exceptions of its failure."""
    try:
        action()
    except (PySparkException, Py4JJavaError) as problem:
        return java_exceptions(problem)
    raise AssertionError("nothing was refused")


def java_exceptions(problem: Any) -> list[str]:
    """Return the Java exceptions of one of pyspark's, outermost first, each with its condition if it has one."""
    exceptions: list[str] = []
    cause = problem.java_exception if isinstance(problem, Py4JJavaError) else getattr(problem, "_origin", None)
    while cause is not None:
        name = str(cause.getClass().getSimpleName())
        condition = _find_condition(cause)
        exceptions.append(f"{name} {condition}" if condition else name)
        cause = cause.getCause()
    return exceptions


def _find_condition(cause: Any) -> str | None:
    methods = {str(method.getName()) for method in cause.getClass().getMethods()}
    getter = next((name for name in ("getCondition", "getErrorClass") if name in methods), None)
    return getattr(cause, getter)() if getter else None
