"""`validate` and `redrive`: every record is in one of the two outputs, as it was, and what is repaired comes back once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from compat_tests.brokers import Broker
from compat_tests.spark.scene import Scene
from spark_integration.query import StreamOptions
from spark_integration.redrive import redrive
from spark_integration.validate import ValidateSummary, validate
from spark_integration.validate.choice import SchemaOptions
from spark_integration.validate.outputs import Outputs

DDL = "id bigint not null, name string, place struct<zip: string>"


def produce(broker: Broker, topic: str, partition: int, values: list[bytes | None]) -> None:
    """Produce values with a key and a header each, which tell the value's number."""
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number, value in enumerate(values):
        producer.produce(topic, value, b"key %d" % number, partition, headers=[("n", b"%d" % number), ("n", None)])
    assert producer.flush(60) == 0


class Validation:
    """A topic of the scene, its outputs, and what each of them holds."""

    def __init__(self, scene: Scene, partitions: int = 2) -> None:
        self.scene = scene
        self.bad, self.good = f"{scene.topic}-bad", f"{scene.topic}-good"
        self.path = str(scene.folder / "table")
        scene.create(partitions)
        scene.create(1, self.bad)
        scene.create(1, self.good)
        self.source = {"kafka.bootstrap.servers": scene.broker.bootstrap, "subscribe": scene.topic}
        self.source["startingOffsets"] = "earliest"
        self.stream = StreamOptions(str(scene.folder / "checkpoint"))

    def file(self, name: str, text: str) -> Path:
        path = self.scene.folder / name
        path.write_text(text)
        return path

    def run(self, schemas: SchemaOptions, on_drift: str = "warn", **outputs: Any) -> ValidateSummary:
        chosen = Outputs(self.bad, **(outputs or {"path": self.path, "topic": self.good}))
        return validate(self.scene.session, self.source, schemas, chosen, self.stream, on_drift)

    def table(self) -> dict[tuple[int, int], Any]:
        rows = self.scene.session.read.parquet(self.path).collect()
        assert len({(row.partition, row.offset) for row in rows}) == len(rows)
        return {(row.partition, row.offset): row.value and row.value.asDict(True) for row in rows}

    def records(self, topic: str) -> list[Any]:
        return list(self.scene.batch(subscribe=topic, includeHeaders="true").orderBy("partition", "offset").collect())

    def letters(self) -> dict[tuple[int, int], tuple[Any, ...]]:
        """Return the dead letters by their origin: key, value, own headers, reason."""
        found = {}
        for row in self.records(self.bad):
            own, added = split(row.headers)
            place = int(added["origin-partition"]), int(added["origin-offset"])
            assert place not in found
            assert added["origin-topic"] == self.scene.topic
            found[place] = row.key, row.value, own, added["dead-letter-reason"]
        return found


def split(headers: list[Any]) -> tuple[list[tuple[str, Any]], dict[str, str]]:
    """Tell a record's own headers from those that were added, the latter without their prefix."""
    first = next(number for number, header in enumerate(headers) if header.key.startswith("kafkacompat-"))
    own = [(header.key, header.value) for header in headers[:first]]
    return own, {header.key.removeprefix("kafkacompat-"): header.value.decode() for header in headers[first:]}


def headers_of(number: int) -> list[tuple[str, Any]]:
    return [("n", b"%d" % number), ("n", None)]


GOOD = [{"id": 1, "name": "a", "place": {"zip": "z"}}, {"id": 2, "name": None, "place": None}]
BAD = [b"{no json", b'{"id": "one"}', b'{"name": "no id"}', b"[1]", b"\xff\xfe"]
REASONS = ["malformed", "does-not-fit", "does-not-fit", "does-not-fit", "malformed"]


def test_every_record_is_in_one_output_and_comes_back(scene: Scene) -> None:
    """JSON by a DDL: typed columns, JSON in a topic, and dead letters that a redrive repairs."""
    run = Validation(scene)
    values = [json.dumps(one).encode() for one in GOOD] + BAD
    produce(scene.broker, scene.topic, 0, [*values, None])
    schemas = SchemaOptions(schema=run.file("schema.ddl", DDL))
    summary = run.run(schemas)
    assert (summary.records, summary.good, summary.reasons) == (8, 3, {"malformed": 2, "does-not-fit": 3})
    assert run.table() == {(0, 0): GOOD[0], (0, 1): GOOD[1], (0, 7): None}
    written = [(row.key, row.value and json.loads(row.value)) for row in run.records(run.good)]
    assert written == [(b"key 0", GOOD[0]), (b"key 1", GOOD[1]), (b"key 7", None)]
    dead = {(0, n): (b"key %d" % n, values[n], headers_of(n), REASONS[n - 2]) for n in range(2, 7)}
    assert run.letters() == dead

    options = {"kafka.bootstrap.servers": scene.broker.bootstrap}
    ledger = str(scene.folder / "ledger")
    repair = "replace(cast(value as string), '\"one\"', '11')"
    first = redrive(scene.session, options, run.bad, ledger, "detail like '%.id %one%'", repair)
    assert (first.redriven, first.left_out, first.redriven_before) == (1, 4, 0)
    again = redrive(scene.session, options, run.bad, ledger, "reason = 'does-not-fit' and offset <= 4", repair)
    assert (again.redriven, again.left_out, again.redriven_before) == (1, 3, 1)
    assert run.run(schemas).reasons == {"does-not-fit": 1}
    assert run.table()[(0, 8)] == {"id": 11, "name": None, "place": None}
    back = run.records(scene.topic)[8:]
    assert [(row.partition, row.key, row.value) for row in back] == [
        (0, b"key 3", b'{"id": 11}'),
        (0, b"key 4", b'{"name": "no id"}'),
    ]
    own, added = split(back[0].headers)
    assert own == headers_of(3)
    assert (added["redriven-topic"], added["origin-offset"]) == (run.bad, "3")
