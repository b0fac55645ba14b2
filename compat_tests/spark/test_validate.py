"""`validate`: every record is in one of the two outputs, unchanged."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from compat_tests.spark.rollups import files_of_table
from compat_tests.spark.scene import Scene
from compat_tests.spark.schema_registry import FakeRegistry
from compat_tests.spark.validation import (
    Validation,
    encode_avro,
    headers_of,
    key_of,
    produce_values,
    record_schema,
    split_headers,
)
from spark_integration.errors import PipelineError
from spark_integration.validate.registry import RegistryOptions
from spark_integration.validate.settings import SchemaOptions

DDL = "id bigint not null, name string, place struct<zip: string>"
GOOD = [{"id": 1, "name": "a", "place": {"zip": "z"}}, {"id": 2, "name": None, "place": None}]
BAD = [b"{no json", b'{"id": "one"}', b'{"name": "no id"}', b"[1]", b"\xff\xfe"]
REASONS = ["malformed", "does-not-fit", "does-not-fit", "does-not-fit", "malformed"]


def test_every_record_is_in_one_output(scene: Scene) -> None:
    """JSON by a DDL: typed columns, and unchanged dead letters."""
    run = Validation(scene)
    values = [json.dumps(row).encode() for row in GOOD] + BAD
    produce_values(scene.broker, scene.topic, 0, [*values, None])
    summary = run.run(SchemaOptions(schema=run.file("schema.ddl", DDL)), path=run.path)
    assert (summary.records, summary.good, summary.reasons) == (8, 3, {"malformed": 2, "does-not-fit": 3})
    assert run.table() == {(0, 0): GOOD[0], (0, 1): GOOD[1], (0, 7): None}
    assert run.letters() == {(0, n): (key_of(n), values[n], headers_of(n), REASONS[n - 2]) for n in range(2, 7)}


FIRST = record_schema(("number", "int"), ("old", "string"))
SECOND = record_schema(("number", "long"), ("word", "string"), word="none")


def with_registry(registry: FakeRegistry, **more: Any) -> SchemaOptions:
    return SchemaOptions(**{"value_format": "avro", "registry": RegistryOptions(registry.url), **more})


@pytest.mark.spark
def test_two_versions_mixed(scene: Scene) -> None:
    """Read by the newest version; a third one that is added later is fetched by its id, and read by the first newest."""
    run = Validation(scene)
    with FakeRegistry() as registry:
        first_id, second_id = (registry.register(f"{scene.topic}-value", json.dumps(kind)) for kind in (FIRST, SECOND))
        values = [
            encode_avro(first_id, FIRST, {"number": n, "old": "x"})
            if n % 2
            else encode_avro(second_id, SECOND, {"number": n, "word": f"w{n}"})
            for n in range(10)
        ]
        bad = [
            b"\1abc",
            b"\0\0",
            encode_avro(77, FIRST, {"number": 1, "old": ""}),
            encode_avro(first_id, FIRST, {"number": 1, "old": ""})[:-2],
        ]
        produce_values(scene.broker, scene.topic, 1, [*values, *bad])
        summary = run.run(with_registry(registry))
        wanted = {(1, n): {"number": n, "word": "none" if n % 2 else f"w{n}"} for n in range(10)}
        assert run.table() == wanted
        reasons = ["no-schema-id", "no-schema-id", "unknown-schema", "malformed"]
        letters = {(1, 10 + n): (key_of(10 + n), bad[n], headers_of(10 + n), reasons[n]) for n in range(4)}
        assert run.letters() == letters
        assert summary.drift == {"new value.old": 6, "changed value.number": 6}

        third = record_schema(("number", "long"), ("word", "string"), ("more", "int"))
        options = with_registry(registry, schema=run.file("second.avsc", json.dumps(SECOND)))
        third_id = registry.register(f"{scene.topic}-value", json.dumps(third))
        produce_values(
            scene.broker, scene.topic, 0, [encode_avro(third_id, third, {"number": 5, "word": "w", "more": 1})]
        )
        assert run.run(options).drift == {"new value.more": 1}
        assert run.table() == wanted | {(0, 0): {"number": 5, "word": "w"}}


@pytest.mark.spark
def test_drift_stops_before_anything_is_written(scene: Scene) -> None:
    """Once the schema is repaired, the same checkpoint continues with that batch."""
    run = Validation(scene)
    produce_values(scene.broker, scene.topic, 0, [b'{"id": 1}', b'{"id": 2, "extra": true}'])
    with pytest.raises(PipelineError, match=r"differ from the schema: new value\.extra \(1\)"):
        run.run(SchemaOptions(schema=run.file("a.ddl", "id bigint")), on_drift="fail")
    assert run.records(run.good) == run.records(run.bad) == []
    run.run(SchemaOptions(schema=run.file("b.ddl", "id bigint, extra boolean")), on_drift="fail")
    assert run.table() == {(0, 0): {"id": 1, "extra": None}, (0, 1): {"id": 2, "extra": True}}


@pytest.mark.spark
def test_an_inferred_schema_is_kept(scene: Scene) -> None:
    """Later records are read by the type that the first run inferred."""
    run = Validation(scene)
    produce_values(scene.broker, scene.topic, 0, [b'{"a": 1, "b": {"c": "x"}}', b'{"a": 2.5}', b"no json"])
    run.run(SchemaOptions())
    produce_values(scene.broker, scene.topic, 1, [b'{"a": "text"}', b'{"a": 3, "new": 1}'])
    summary = run.run(SchemaOptions())
    assert summary.drift == {"changed value.a": 1, "new value.new": 1, "missing value.b": 1}
    assert run.table() == {
        (0, 0): {"a": 1.0, "b": {"c": "x"}},
        (0, 1): {"a": 2.5, "b": None},
        (1, 1): {"a": 3.0, "b": None},
    }
    assert {place: letter[3] for place, letter in run.letters().items()} == {
        (0, 2): "malformed",
        (1, 0): "does-not-fit",
    }


@pytest.mark.spark
def test_a_schema_is_inferred_after_the_header_of_a_registry(scene: Scene) -> None:
    """A registry's serializers put a 0 and an id before JSON, too."""
    run = Validation(scene)
    produce_values(scene.broker, scene.topic, 0, [b"\0\0\0\0\1" + b'{"a": 1}', b"none", None])
    run.run(SchemaOptions(wire_format="confluent"))
    assert run.table() == {(0, 0): {"a": 1}, (0, 2): None}
    assert {place: letter[3] for place, letter in run.letters().items()} == {(0, 1): "no-schema-id"}


@pytest.mark.spark
def test_a_registry_that_fails_kills_no_records(scene: Scene) -> None:
    """The batch fails, and is repeated once the registry answers."""
    run = Validation(scene)
    with FakeRegistry("me:secret") as registry:
        schema_id = registry.register("elsewhere", json.dumps(FIRST))
        value = {"number": 1, "old": "x"}
        produce_values(scene.broker, scene.topic, 0, [encode_avro(schema_id, FIRST, value)])
        options = with_registry(registry, schema=run.file("first.avsc", json.dumps(FIRST)), subject="none")
        known = replace(options, registry=RegistryOptions(registry.url, (("basic.auth.user.info", "me:secret"),)))
        with pytest.raises(PipelineError, match="refuses the credentials"):
            run.run(options)
        # The driver finds no subject and continues; the executor gets no answer.
        registry.fail_for_ids = True
        with pytest.raises(Exception, match="does not answer"):
            run.run(known)
        assert run.records(run.bad) == []
        registry.fail_for_ids = False
        run.run(known)
    assert run.table() == {(0, 0): value}


@pytest.mark.spark
def test_good_records_in_a_topic(scene: Scene) -> None:
    """As JSON, with key, headers and origin; a tombstone stays one, so that a compacted topic forgets its key."""
    run = Validation(scene)
    produce_values(scene.broker, scene.topic, 0, [*(json.dumps(row).encode() for row in GOOD), None])
    run.run(SchemaOptions(schema=run.file("schema.ddl", DDL)), topic=run.good)
    rows = run.records(run.good)
    assert [(row.key, row.value and json.loads(row.value)) for row in rows] == [
        (key_of(0), GOOD[0]),
        (key_of(1), GOOD[1]),
        (key_of(2), None),
    ]
    assert [split_headers(row.headers)[0] for row in rows] == [headers_of(number) for number in range(3)]
    assert run.good_records().keys() == {(0, 0), (0, 1), (0, 2)}


@pytest.mark.spark
def test_types_in_a_table_and_a_topic(scene: Scene) -> None:
    """Spark's values for Avro's types."""
    kind = record_schema(
        ("when", {"type": "long", "logicalType": "timestamp-micros"}),
        ("local", {"type": "long", "logicalType": "local-timestamp-micros"}),
        ("price", {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}),
        ("raw", "bytes"),
        ("tags", {"type": "map", "values": "int"}),
        ("some", ["null", "int", "string"]),
    )
    run = Validation(scene)
    payload = encode_avro(
        0, kind, {"when": 1_000_001, "local": 2, "price": Decimal(0), "raw": b"\0", "tags": {"a": 1}, "some": "x"}
    )[5:]
    produce_values(scene.broker, scene.topic, 0, [payload])
    run.run(SchemaOptions(value_format="avro", schema=run.file("kind.avsc", json.dumps(kind))))
    (row,) = run.table().values()
    assert row["when"] == datetime(1970, 1, 1, 0, 0, 1, 1)
    assert (str(row["price"]), row["raw"], row["tags"]) == ("0.00", b"\0", {"a": 1})
    assert row["some"] == {"member0": None, "member1": "x"}
    (record,) = run.good_records().values()
    assert (record["when"], record["local"]) == ("1970-01-01T00:00:01.000001Z", "1970-01-01T00:00:00.000002")
    assert (record["price"], record["raw"], record["tags"]) == (0.0, "AA==", {"a": 1})


@pytest.mark.spark
def test_delta(scene: Scene) -> None:
    """A table gets new columns; a batch that it has, by its number, is not appended again."""
    run = Validation(scene)
    produce_values(scene.broker, scene.topic, 0, [b'{"id": 1}', b"no json"])
    first = run.command(run.file("a.ddl", "id bigint"), "--path", run.path, "--format", "delta")
    assert first.wait() == 0, first.stderr
    assert json.loads(first.stdout)["reasons"] == {"malformed": 1}
    # The first batch is repeated, as if only its commit was missing.
    commits = Path(run.stream.checkpoint_location) / "commits"
    for name in ("0", ".0.crc"):
        (commits / name).unlink()
    produce_values(scene.broker, scene.topic, 0, [b'{"id": 2, "more": "x"}'])
    second = run.command(run.file("b.ddl", "id bigint, more string"), "--path", run.path, "--format", "delta")
    assert second.wait() == 0, second.stderr
    rows = [row for file in files_of_table(Path(run.path)) for row in parquet.ParquetFile(file).read().to_pylist()]
    assert sorted((row["offset"], row["value"]["id"], row["value"].get("more")) for row in rows) == [
        (0, 1, None),
        (2, 2, "x"),
    ]
    assert run.letters().keys() == {(0, 1)}


@pytest.mark.spark
@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--schema", "{ddl}"], "good records would go nowhere: give --path, --topic or both"),
        (["--schema", "{ddl}", "--topic", "{topic}"], "{topic} is read and would be written to: give another topic"),
        (["--schema", "{ddl}", "--topic", "{topic}-no"], "there is no topic {topic}-no on"),
        (["--schema", "{bad}", "--path", "x"], "'id bigint,,' is no schema"),
        (
            ["--schema", "{bad}", "--path", "x", "--value-format", "avro"],
            "the Avro schema 'id bigint,,' cannot be read",
        ),
        (
            ["--path", "x", "--value-format", "avro"],
            "avro values do not tell their types: give --schema, or --schema-registry",
        ),
        (["--path", "x"], "no JSON object is among the first 1000 records: give --schema"),
        (
            ["--path", "x", "--schema-registry", "http://127.0.0.1:1"],
            "the schema registry http://127.0.0.1:1 does not answer",
        ),
        (["--path", "x", "--schema-registry", "{url}"], "the schema registry {url} has no subject {topic}-value"),
        (["--path", "x", "--schema-registry", "{url}", "--subject", "avro"], "the subject avro holds AVRO schemas"),
    ],
)
def test_validate_refuses_bad_options(
    scene: Scene, more: list[str], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """One sentence, exit code 2, and nothing new on disk."""
    run = Validation(scene)
    with FakeRegistry() as registry:
        registry.register("avro", json.dumps(FIRST))
        words = {"topic": scene.topic, "url": registry.url}
        words |= {"ddl": str(run.file("a.ddl", "id bigint")), "bad": str(run.file("b.ddl", "id bigint,,"))}
        code = run.in_process(*(argument.format(**words) for argument in more))
    assert code == 2
    assert capfd.readouterr().err.splitlines()[-1].startswith(f"Error: {message.format(**words)}")
    assert not Path(run.stream.checkpoint_location).exists()
