"""A word count of PyFlink, until SIGTERM: it reads the lines of NAME and writes every new count to NAME-out, exactly once.

The environment says BOOTSTRAP, NAME, MODE (where Python runs: process or thread), JARS (their URIs), CHECKPOINTS (the URI of
a folder) and RESTORE (the URI of the checkpoint from which the job goes on, or nothing). A record of NAME-out is the word, a
space and its count.
"""

from __future__ import annotations

import os
import signal
import sys
import sysconfig
from collections.abc import Iterator
from typing import Any

from pyflink.common import Configuration, SimpleStringSchema, Types, WatermarkStrategy
from pyflink.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.connectors.base import DeliveryGuarantee
from pyflink.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from pyflink.datastream.state import ValueStateDescriptor

BOOTSTRAP, NAME = os.environ["BOOTSTRAP"], os.environ["NAME"]


class Count(MapFunction):  # type: ignore[misc]
    """Returns each word with the number of times it has come so far."""

    def __init__(self) -> None:
        self._total: Any = None

    def open(self, runtime_context: RuntimeContext) -> None:
        self._total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def map(self, value: str) -> str:
        total = (self._total.value() or 0) + 1
        self._total.update(total)
        return f"{value} {total}"


def split(line: str) -> Iterator[str]:
    """Yield the words of a line."""
    yield from line.split()


def make_settings() -> Configuration:
    """Return what the job needs besides its graph."""
    settings = Configuration()
    settings.set_string("python.execution-mode", os.environ["MODE"])
    settings.set_string("python.executable", sys.executable)
    settings.set_string("python.client.executable", sys.executable)
    settings.set_string("python.fn-execution.bundle.time", "100")
    settings.set_string("pipeline.jars", os.environ["JARS"])
    settings.set_string("execution.checkpointing.interval", "500 ms")
    settings.set_string("execution.checkpointing.dir", os.environ["CHECKPOINTS"])
    settings.set_string("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION")
    settings.set_string("restart-strategy.type", "disable")
    settings.set_string("parallelism.default", "2")
    if os.environ["RESTORE"]:
        settings.set_string("execution.state-recovery.path", os.environ["RESTORE"])
    return settings


def make_source() -> KafkaSource:
    """Return the source of the lines."""
    builder = KafkaSource.builder().set_bootstrap_servers(BOOTSTRAP).set_topics(NAME).set_group_id(NAME)
    builder.set_starting_offsets(KafkaOffsetsInitializer.earliest())
    return builder.set_value_only_deserializer(SimpleStringSchema()).build()


def make_sink() -> KafkaSink:
    """Return the sink of the counts, which writes in transactions."""
    serializer = KafkaRecordSerializationSchema.builder().set_topic(f"{NAME}-out")
    serializer.set_value_serialization_schema(SimpleStringSchema())
    builder = KafkaSink.builder().set_bootstrap_servers(BOOTSTRAP).set_record_serializer(serializer.build())
    builder.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).set_transactional_id_prefix(NAME)
    return builder.set_property("transaction.timeout.ms", "600000").build()


def main() -> None:
    """Run until SIGTERM; the JVM that this starts ends with it."""
    # The Python in the JVM's threads does not find the packages of a virtual environment by itself.
    os.environ["PYTHONPATH"] = sysconfig.get_path("purelib")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    environment = StreamExecutionEnvironment.get_execution_environment(make_settings())
    lines = environment.from_source(make_source(), WatermarkStrategy.no_watermarks(), "lines").uid("lines")
    words = lines.flat_map(split, Types.STRING()).uid("words").key_by(str, Types.STRING())
    words.map(Count(), Types.STRING()).uid("counts").sink_to(make_sink()).uid("out")
    environment.execute(NAME)


if __name__ == "__main__":
    main()
