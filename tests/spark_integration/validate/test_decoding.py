"""The effect of one value on its batch: it is decoded or a dead letter, and its differences are reported once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql.types import DoubleType, LongType, StructField, StructType

from spark_integration.errors import PipelineError
from spark_integration.validate import batches
from spark_integration.validate.batches import ValidateBatchWriter
from spark_integration.validate.decoding import BatchDecoder
from spark_integration.validate.drift import MOST_DIFFERENCES, OTHERS, BatchDrift
from spark_integration.validate.formats import DecodingPlan
from spark_integration.validate.registry import (
    RegistryError,
    RegistryOptions,
    Schema,
    SchemaRegistry,
    UnknownSchemaError,
)
from spark_integration.validate.settings import SPARK
from spark_integration.validate.state import BegunBatch, parse_begun_batch
from spark_integration.validate.tally import BatchCounts, parse_tally

REGISTRY = RegistryOptions("http://127.0.0.1:9")
AVRO = Schema("AVRO", '"long"')


def json_plan(kind: StructType) -> DecodingPlan:
    return DecodingPlan("json", "plain", Schema(SPARK, kind.json()))


def decode_and_tally(decoder: BatchDecoder, *values: bytes | None) -> tuple[list[Any], BatchCounts]:
    """Return the reasons of an Arrow batch of values, and its counts."""
    batch = decoder.decode_batch(pa.RecordBatch.from_pydict({"value": pa.array(values, pa.binary())}))
    return batch.column("reason").to_pylist(), parse_tally(dict(batch.column("tally")[0].as_py()))


def reasons_of(decoder: BatchDecoder, *values: bytes | None) -> list[Any]:
    return [decoder.decode_value(value, BatchDrift()).reason for value in values]


def test_a_value_that_a_library_fails_on_is_malformed() -> None:
    """Each of these values made a library raise something of its own, which would stop the query for ever."""
    properties = {name: {"type": "integer"} for name in "abc"}
    judge = BatchDecoder(DecodingPlan("json", "plain", Schema("JSON", json.dumps({"properties": properties}))), {})
    assert reasons_of(judge, b'{"a": 1, "\\ud83d": 1}', b'{"a": 1}') == ["malformed", None]
    text = BatchDecoder(json_plan(StructType([StructField("a", LongType())])), {})
    assert reasons_of(text, b'{"b":1e99999999999999999999}', b'{"a": 1}') == [None, None]


def test_numbers_that_no_column_holds() -> None:
    decoder = BatchDecoder(json_plan(StructType([StructField("a", DoubleType())])), {})
    assert decode_and_tally(decoder, b'{"a": 1e400}', b'{"a": 1}')[0] == ["does-not-fit", None]


def test_other_failures_end_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure of the registry, or of memory, ends the batch."""
    decoder = BatchDecoder(json_plan(StructType([StructField("a", LongType())])), {})
    for problem in (PipelineError("no"), MemoryError()):
        monkeypatch.setattr(decoder._format, "decode", make_raising(problem))
        with pytest.raises(type(problem)):
            decoder.decode_value(b"{}", BatchDrift())


def make_raising(problem: Exception) -> Callable[..., Any]:
    def fail(*_: Any) -> Any:
        raise problem

    return fail


def test_new_fields_are_reported_up_to_a_limit() -> None:
    """Objects that are keyed by ids have new paths in each record, and a key may be long."""
    decoder = BatchDecoder(json_plan(StructType([StructField("a", LongType())])), {})
    total = BatchCounts()
    differences: list[str] = []
    for first in range(0, 1000, 100):
        values = [json.dumps({"b": 1, f"{number} {'x' * 10_000}": 1}).encode() for number in range(first, first + 100)]
        differences += total.add(decode_and_tally(decoder, *values)[1])
    assert len(differences) == len(set(differences)) == len(total.drift)
    assert len(total.drift) <= MOST_DIFFERENCES + 2
    assert (total.drift["new value.b"], total.drift["missing value.a"]) == (1000, 1000)
    assert total.drift[OTHERS] == 1000 - (len(total.drift) - 3)
    assert max(map(len, differences)) < 300


def test_counts_of_many_tasks_are_summed() -> None:
    total = BatchCounts()
    for task in range(5):
        counts = decode_and_tally(
            BatchDecoder(json_plan(StructType([StructField("a", LongType())])), {}),
            *(json.dumps({"a": 1, f"{task}-{number}": 1}).encode() for number in range(150)),
        )[1]
        total.add(counts)
    assert sum(total.drift.values()) == 750
    assert total.drift[OTHERS] == 750 - MOST_DIFFERENCES


def make_frame(schema_id: int, payload: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + payload


def test_an_unknown_schema_stays_unknown_when_the_batch_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A schema that is registered between a kill and a restart makes no dead letter a good record as well."""
    known: dict[int, Schema] = {1: AVRO, 78: Schema("AVRO", "{")}
    monkeypatch.setattr(SchemaRegistry, "by_id", lambda _, number: find_schema(known, number))
    plan = DecodingPlan("avro", "confluent", AVRO, None, REGISTRY)
    values = [make_frame(1, b"\x02"), make_frame(77, b"\x02"), make_frame(78, b"\x02"), make_frame(4_000_000_000, b"")]
    reasons, counts = decode_and_tally(BatchDecoder(plan, {}), *values)
    assert reasons == [None, "unknown-schema", "unusable-schema", "unknown-schema"]
    begun = parse_begun_batch(BegunBatch(plan, {}, counts.refused).as_json(), REGISTRY)
    known[77] = known[78] = known[4_000_000_000] = AVRO
    assert reasons_of(BatchDecoder(plan, {77: AVRO}, begun.refused), *values) == reasons
    assert reasons_of(BatchDecoder(plan, {}), *values) == [None, None, None, "malformed"]
    # A schema that was known is no dead letter the second time.
    del known[1]
    with pytest.raises(RegistryError, match="has no schema 1 any more"):
        BatchDecoder(plan, {}, begun.refused).decode_value(values[0], BatchDrift())


def find_schema(known: Mapping[int, Schema], number: int) -> Schema:
    if number not in known:
        raise UnknownSchemaError(str(number))
    return known[number]


def test_a_key_in_brackets_is_printed_unchanged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As markup it would be the end of a style that never began, which Rich rejects."""
    from spark_integration.queries.console import say

    decoder = BatchDecoder(json_plan(StructType([StructField("a", LongType())])), {})
    counts = decode_and_tally(decoder, b'{"a": 1, "[/x]": 1, "[red]": 1}')[1]
    monkeypatch.setattr(batches, "decode_records", lambda *_: cast("Any", Checkpointed()))
    monkeypatch.setattr(batches, "sum_tallies", lambda _: counts)
    monkeypatch.setattr(batches, "_release_frame", lambda _: None)
    unused = cast("Any", None)
    plan = json_plan(StructType([StructField("a", LongType())]))
    made = ValidateBatchWriter(plan, unused, unused, unused, {}, cast("Any", NoState()), True, say)
    with pytest.raises(PipelineError, match=r"differ from the schema: new value\.\["):
        made(cast("Any", Checkpointed()), 0)
    lines = sorted(capsys.readouterr().err.splitlines())
    assert lines == [f"the records differ from the schema: new value.{key}" for key in ("[/x]", "[red]")]


class Checkpointed:
    """A frame that is never computed."""

    def select(self, *_: Any) -> Checkpointed:
        return self

    def localCheckpoint(self) -> Checkpointed:
        return self


class NoState:
    """A batch that never began."""

    def read_begun(self, *_: Any) -> None:
        return None
