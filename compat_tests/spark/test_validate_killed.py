"""`validate` repeated: killed at a random moment, or failed between its outputs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compat_tests.spark.copies import Run, count_offsets, kill_count, kill_some_times
from compat_tests.spark.scene import Scene
from compat_tests.spark.schema_registry import FakeRegistry
from compat_tests.spark.validation import Validation, encode_avro, key_of, produce_values, record_schema
from spark_integration.validate import batches
from spark_integration.validate.outputs import select_lacking, write_topic
from spark_integration.validate.registry import RegistryOptions
from spark_integration.validate.settings import SchemaOptions

pytestmark = pytest.mark.spark

OLD = record_schema(("a", "int"))
# It cannot read anything that was written with OLD.
NEW = record_schema(("a", "int"), ("b", "int"))


@pytest.mark.parametrize("fails_at", [1, 2])
def test_a_batch_that_failed_between_its_outputs(scene: Scene, monkeypatch: pytest.MonkeyPatch, fails_at: int) -> None:
    """The repeated batch reads with the schema that it began with, and each record goes where it went before."""
    run = Validation(scene)
    calls: list[int] = []

    def write_and_fail(*arguments: Any) -> None:
        write_topic(*arguments)
        calls.append(1)
        if len(calls) == fails_at:
            raise OSError("the power is gone")

    with FakeRegistry() as registry:
        options = SchemaOptions("avro", registry=RegistryOptions(registry.url))
        old = registry.register(f"{scene.topic}-value", json.dumps(OLD))
        values = [encode_avro(old, OLD, {"a": number}) for number in range(20)]
        values[5] = values[15] = b"\0\0\0\0\1"
        produce_values(scene.broker, scene.topic, 0, values)
        monkeypatch.setattr(batches, "write_topic", write_and_fail)
        with pytest.raises(Exception, match="the power is gone"):
            run.run(options)
        new = registry.register(f"{scene.topic}-value", json.dumps(NEW))
        run.run(options)
        good = {(0, number): {"a": number} for number in range(20) if number not in (5, 15)}
        assert run.table() == run.good_records() == good
        assert run.letters().keys() == {(0, 5), (0, 15)}

        # The next batch is read with the newest schema.
        produce_values(
            scene.broker, scene.topic, 1, [encode_avro(new, NEW, {"a": 1, "b": 2}), encode_avro(old, OLD, {"a": 1})]
        )
        run.run(options)
        assert run.good_records() == good | {(1, 0): {"a": 1, "b": 2}}
        assert run.letters()[(1, 1)][3] == "does-not-fit"


def test_killed_at_any_moment_nothing_is_lost_or_twice(scene: Scene) -> None:
    run, count = Validation(scene, 3, of_outputs=3), 10_000
    values = [b"broken %d" % number if number % 3 == 0 else b'{"id": %d}' % number for number in range(count)]
    for partition in range(3):
        produce_values(scene.broker, scene.topic, partition, values)
    arguments = run.arguments("--schema", str(run.file("a.ddl", "id bigint")), "--path", run.path, "--topic", run.good)
    # Two batches for each kill, so that each can come in the middle.
    arguments += ["--maxOffsetsPerTrigger", str(3 * count // (2 * kill_count() + 4))]

    def done() -> int:
        return count_offsets(scene.broker, run.good) + count_offsets(scene.broker, run.bad)

    kill_some_times(scene.folder, arguments, done, 3 * count)
    last = Run(scene.folder / "last", *arguments)
    assert last.wait() == 0, last.stderr
    wanted = {(partition, number): {"id": number} for partition in range(3) for number in range(count) if number % 3}
    dead = {(partition, number) for partition in range(3) for number in range(0, count, 3)}
    assert run.table() == wanted
    assert run.good_records() == wanted
    letters = run.letters()
    assert letters.keys() == dead
    assert all(letter[:2] == (key_of(number), values[number]) for (_, number), letter in letters.items())


def test_missing_records_are_written_in_order_of_their_keys(spark: Any) -> None:
    """A key's records after a missing one are written again, others are not."""
    rows = [("t", 0, offset, key) for offset, key in enumerate(("a", "b", None, "a", None, "b"))]
    records = spark.createDataFrame(rows, "topic string, partition int, offset bigint, key string")
    written = spark.createDataFrame([("t", 0, offset) for offset in (1, 2, 3, 3)], records.schema[:3])
    assert [row.offset for row in select_lacking(records, written).collect()] == [0, 3, 4, 5]
