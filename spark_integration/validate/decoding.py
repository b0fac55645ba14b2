"""The Arrow function of `validate`: bytes in, typed values out, with a reason if there is no value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql.types import IntegerType, LongType, MapType, StringType, StructField, StructType

from spark_integration.errors import PipelineError
from spark_integration.topics.casts import arrow_type
from spark_integration.validate.dead import DeadLetterError, shorten_value
from spark_integration.validate.drift import BatchDrift, RecordDrift, compare_types, shorten_difference
from spark_integration.validate.formats import DecodingPlan, ValueFormat, make_format
from spark_integration.validate.framing import split_frame
from spark_integration.validate.registry import RegistryError, Schema, SchemaRegistry, UnknownSchemaError
from spark_integration.validate.settings import CONFLUENT

TALLY = MapType(StringType(), LongType(), False)
# Keys of the tally of an Arrow batch, which stands in its first row. After a key that ends with a space a word follows.
ROWS, DEAD, REFUSED, DRIFT, HAS_FIELD = "rows", "dead ", "refused ", "drift ", "has "

Known = Mapping[int, Schema]
# Ids of schemas that could not be used when a batch began, and the reason for dead letters.
Refused = Mapping[int, str]
OF_SCHEMAS = ("unknown-schema", "unusable-schema")


class DecodedValue(NamedTuple):
    """A value, or the reason why there is none."""

    value: Any = None
    schema_id: int | None = None
    reason: str | None = None
    detail: str | None = None


def decode_records(
    frame: DataFrame, plan: DecodingPlan, known: Broadcast[Known], refused: Refused | None = None
) -> DataFrame:
    """Add to the records of *frame*: `decoded`, `schemaId`, `reason` and `detail` (null for a good one), `tally`.

    *refused* is given for a repeated batch: records with these schema ids are dead letters again.
    """
    added = [
        StructField("decoded", make_format(plan).type),
        StructField("schemaId", IntegerType()),
        StructField("reason", StringType()),
        StructField("detail", StringType()),
        StructField("tally", TALLY),
    ]
    return frame.mapInArrow(_decoder_of_batches(plan, known, refused), StructType([*frame.schema.fields, *added]))


def _decoder_of_batches(
    plan: DecodingPlan, known: Broadcast[Known], refused: Refused | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def decode_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoder = BatchDecoder(plan, known.value, refused)
        for batch in batches:
            yield decoder.decode_batch(batch)

    return decode_batches


class BatchDecoder:
    """Decodes the values of one task; *known* are schemas by their ids, all others come from the registry."""

    def __init__(self, plan: DecodingPlan, known: Known, refused: Refused | None = None) -> None:
        self._format: ValueFormat = make_format(plan)
        self._framed = plan.wire_format == CONFLUENT
        self._registry = SchemaRegistry(plan.registry) if plan.registry else None
        self._repeated = refused is not None
        self._writers: dict[int, Schema | DeadLetterError] = dict(known)
        self._writers |= {number: _refused_letter(number, reason) for number, reason in (refused or {}).items()}
        # None for a schema that does not tell how it differs, so that each value has to.
        self._drifts: dict[int, RecordDrift | None] = {}
        self._reported: set[str] = set()
        self.type = arrow_type(self._format.type)

    def decode_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with the columns that `decode_records` adds."""
        seen = BatchDrift()
        decoded = [self.decode_value(value, seen) for value in batch.column("value").to_pylist()]
        column, decoded = self._make_column(decoded)
        tally = pa.array([self._tally(decoded, seen)] + [None] * (len(decoded) - 1), arrow_type(TALLY))
        columns = [
            column,
            pa.array([_signed_id(value.schema_id) for value in decoded], pa.int32()),
            pa.array([value.reason for value in decoded], pa.string()),
            pa.array([value.detail for value in decoded], pa.string()),
            tally if len(decoded) else tally.slice(0, 0),
        ]
        names = ["decoded", "schemaId", "reason", "detail", "tally"]
        return pa.RecordBatch.from_arrays([*batch.columns, *columns], [*batch.schema.names, *names])

    def decode_value(self, value: bytes | None, seen: BatchDrift) -> DecodedValue:
        """Decode one value; null, which deletes a key of a compacted topic, is a good value of every schema."""
        if value is None:
            return DecodedValue()
        schema_id, drift = None, RecordDrift()
        try:
            payload, writer = value, None
            if self._framed:
                schema_id, payload = split_frame(value)
                writer = self._find_writer(schema_id)
                drift = self._drifts.get(schema_id) or drift
            decoded = DecodedValue(self._decode_payload(payload, writer, drift), schema_id)
        except DeadLetterError as problem:
            decoded = DecodedValue(None, schema_id, problem.reason, _utf8_text(problem.detail))
        seen.add(drift, decoded.reason is None)
        return decoded

    def _decode_payload(self, payload: bytes, writer: Schema | None, drift: RecordDrift) -> Any:
        try:
            return self._format.decode(payload, writer, drift)
        except (DeadLetterError, PipelineError, MemoryError):
            raise
        except Exception as problem:
            # Without this a value on which a library fails in an unforeseen way would stop the query for ever.
            raise DeadLetterError("malformed", f"cannot be read: {type(problem).__name__} {problem}") from None

    def _find_writer(self, schema_id: int) -> Schema | None:
        if self._registry is None:
            return None
        known = self._writers.get(schema_id)
        if known is None:
            known = self._writers[schema_id] = self._ask(self._registry, schema_id)
        if isinstance(known, DeadLetterError):
            raise known
        if schema_id not in self._drifts:
            self._compare(schema_id, known)
        return known

    def _ask(self, registry: SchemaRegistry, schema_id: int) -> Schema | DeadLetterError:
        try:
            return registry.by_id(schema_id)
        except UnknownSchemaError as problem:
            if self._repeated:
                raise RegistryError(
                    f"the schema registry {registry.url} has no schema {schema_id} any more, and an "
                    "unfinished batch needs it: register it again"
                ) from problem
            return DeadLetterError("unknown-schema", f"the registry {registry.url} has no schema {schema_id}")

    def _compare(self, schema_id: int, writer: Schema) -> None:
        try:
            kind = self._format.type_of(writer)
        except PipelineError as problem:
            self._writers[schema_id] = dead = DeadLetterError("unusable-schema", f"schema {schema_id}: {problem}")
            raise dead from None
        self._drifts[schema_id] = compare_types(kind, self._format.type) if kind is not None else None

    def _make_column(self, decoded: list[DecodedValue]) -> tuple[pa.Array, list[DecodedValue]]:
        """Return the column of the values; if pyarrow rejects some, these become dead letters."""
        try:
            return pa.array([value.value for value in decoded], self.type), decoded
        except Exception:
            judged = [self._check_column_value(value) for value in decoded]
            return pa.array([value.value for value in judged], self.type), judged

    def _check_column_value(self, decoded: DecodedValue) -> DecodedValue:
        try:
            pa.array([decoded.value], self.type)
        except Exception as problem:
            return DecodedValue(
                None,
                decoded.schema_id,
                "does-not-fit",
                f"{shorten_value(str(problem))} in {shorten_value(decoded.value)}",
            )
        return decoded

    def _tally(self, values: list[DecodedValue], seen: BatchDrift) -> list[tuple[str, int]]:
        tally: Counter[str] = Counter({ROWS: len(values)})
        tally.update(f"{DEAD}{decoded.reason}" for decoded in values if decoded.reason is not None)
        tally.update(
            f"{REFUSED}{decoded.schema_id} {decoded.reason}" for decoded in values if decoded.reason in OF_SCHEMAS
        )
        tally.update(f"{HAS_FIELD}{path}" for path in seen.has)
        for difference, count in seen.differs.most_common():
            name = shorten_difference(_utf8_text(difference), self._reported)
            self._reported.add(name)
            tally[DRIFT + name] += count
        return list(tally.items())


def _refused_letter(schema_id: int, reason: str) -> DeadLetterError:
    return DeadLetterError(reason, f"schema {schema_id} could not be used when the batch was begun")


def _signed_id(schema_id: int | None) -> int | None:
    """Return the id as Spark's and Java's signed integers hold it."""
    return schema_id if schema_id is None or schema_id < 1 << 31 else schema_id - (1 << 32)


def _utf8_text(text: str) -> str:
    """Replace half characters, which JSON can name and UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()
