"""Helpers of the tests of `validate` and `redrive`: a topic, its outputs, and their contents."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastavro
import pytest
from confluent_kafka import Producer

from compat_tests.brokers import Broker
from compat_tests.spark.copies import ANY_NUMBER, Run
from compat_tests.spark.scene import Scene
from spark_integration.command_line.validate import command
from spark_integration.queries.settings import StreamOptions
from spark_integration.validate.pipeline import ValidateSummary, validate
from spark_integration.validate.settings import SchemaOptions, ValidateOutputs

Place = tuple[int, int]


def produce_values(broker: Broker, topic: str, partition: int, values: Sequence[bytes | None]) -> None:
    """Produce values with a key and headers each, which name the value's number."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, **ANY_NUMBER})
    for number, value in enumerate(values):
        producer.produce(topic, value, key_of(number), partition, headers=headers_of(number))
    assert producer.flush(60) == 0


def key_of(number: int) -> bytes:
    return b"key %d" % number


def headers_of(number: int) -> list[tuple[str, Any]]:
    """Return headers of one name, one of them null, as Kafka allows."""
    return [("n", b"%d" % number), ("n", None)]


def encode_avro(schema_id: int, schema: Any, value: Any) -> bytes:
    """Encode a value like the serializers of schema registries."""
    stream = io.BytesIO(b"\0" + schema_id.to_bytes(4, "big"))
    stream.seek(0, io.SEEK_END)
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    return stream.getvalue()


def record_schema(*fields: tuple[str, Any], **defaults: Any) -> dict[str, Any]:
    """Return an Avro schema with these fields."""
    made = [
        {"name": name, "type": kind, **({"default": defaults[name]} if name in defaults else {})}
        for name, kind in fields
    ]
    return {"type": "record", "name": "Event", "fields": made}


class Validation:
    """A topic of the scene and the outputs of its validation."""

    def __init__(self, scene: Scene, partitions: int = 2, of_outputs: int = 1) -> None:
        self.scene = scene
        self.bad, self.good = f"{scene.topic}-bad", f"{scene.topic}-good"
        self.path = str(scene.folder / "table")
        scene.create(partitions)
        scene.create(of_outputs, self.bad)
        scene.create(of_outputs, self.good)
        self.source = {"kafka.bootstrap.servers": scene.broker.bootstrap, "subscribe": scene.topic}
        self.source["startingOffsets"] = "earliest"
        self.runs = 0
        self.stream = StreamOptions(str(scene.folder / "checkpoint"))

    def file(self, name: str, text: str) -> Path:
        """Write a file of the scene."""
        path = self.scene.folder / name
        path.write_text(text)
        return path

    def run(self, schemas: SchemaOptions, on_drift: str = "warn", **outputs: Any) -> ValidateSummary:
        """Validate the existing records, by default into a folder and a topic."""
        chosen = ValidateOutputs(self.bad, **(outputs or {"path": self.path, "topic": self.good}))
        return validate(self.scene.session, self.source, schemas, chosen, self.stream, on_drift)

    def arguments(self, *more: str) -> list[str]:
        """Return the arguments of the command that validates the topic."""
        words = ["validate", "--bootstrap-server", self.scene.broker.bootstrap, "--subscribe", self.scene.topic]
        words += ["--dead-letter-topic", self.bad, "--checkpointLocation", self.stream.checkpoint_location]
        return [*words, *more]

    def command(self, schema: Path, *more: str) -> Run:
        """Start the command as a process of its own."""
        self.runs += 1
        folder = self.scene.folder / f"run{self.runs}"
        return Run(folder, *self.arguments("--schema", str(schema), "--json", *more))

    def in_process(self, *more: str) -> int:
        """Run the command with the existing session; return its exit code."""
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(self.scene.session.__class__, "stop", lambda _: None)
            with pytest.raises(SystemExit) as ended:
                command.main(self.arguments(*more)[1:], standalone_mode=False)
        return int(ended.value.code or 0)

    def table(self, format: str = "parquet") -> dict[Place, Any]:
        """Return the values of good records by their places; AssertionError if one is there twice."""
        rows = self.scene.session.read.format(format).option("mergeSchema", "true").load(self.path).collect()
        assert len({(row.partition, row.offset) for row in rows}) == len(rows)
        return {(row.partition, row.offset): row.value and row.value.asDict(True) for row in rows}

    def records(self, topic: str) -> list[Any]:
        """Return the records of a topic, in order."""
        return list(self.scene.batch(subscribe=topic, includeHeaders="true").orderBy("partition", "offset").collect())

    def good_places(self) -> list[Place]:
        """Return the origins of the records of the good topic, one of them twice if it is there twice."""
        return [place_of(split_headers(row.headers)[1]) for row in self.records(self.good)]

    def good_records(self) -> dict[Place, Any]:
        """Return the JSON of the good topic by the records' origin; AssertionError if one is there twice."""
        rows = [(split_headers(row.headers)[1], row.value) for row in self.records(self.good)]
        records = {place_of(added): value and json.loads(value) for added, value in rows}
        assert len(records) == len(rows)
        return records

    def letters(self) -> dict[Place, tuple[Any, ...]]:
        """Return the dead letters by their origin: key, value, own headers, reason."""
        letters: dict[Place, tuple[Any, ...]] = {}
        for row in self.records(self.bad):
            own, added = split_headers(row.headers)
            assert place_of(added) not in letters
            assert added["origin-topic"] == self.scene.topic
            letters[place_of(added)] = row.key, row.value, own, added["dead-letter-reason"]
        return letters


def place_of(added: dict[str, str]) -> Place:
    return int(added["origin-partition"]), int(added["origin-offset"])


def split_headers(headers: list[Any]) -> tuple[list[tuple[str, Any]], dict[str, str]]:
    """Split a record's headers into its own and the added ones, the latter without their prefix."""
    first = next(number for number, header in enumerate(headers) if header.key.startswith("kafkacompat-"))
    own = [(header.key, header.value) for header in headers[:first]]
    return own, {header.key.removeprefix("kafkacompat-"): header.value.decode() for header in headers[first:]}
