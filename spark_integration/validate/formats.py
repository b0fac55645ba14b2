"""The formats of values: decoders with one interface, made from the plan that the driver sends to the executors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql.types import ArrayType, DataType, MapType, StructType, _parse_datatype_json_string

from spark_integration.errors import PipelineError
from spark_integration.validate.avro import AvroDecoder
from spark_integration.validate.drift import CHANGED, NEW, RecordDrift
from spark_integration.validate.json_schema import JsonSchemaValidator
from spark_integration.validate.json_values import make_reader, needs_digits, parse_json
from spark_integration.validate.protobuf import ProtobufDecoder
from spark_integration.validate.registry import RegistryOptions, Schema
from spark_integration.validate.settings import CONFLUENT


@dataclass(frozen=True)
class DecodingPlan:
    """How values are decoded: with the *reader* schema, and with or without the header of the *wire_format* confluent.

    *registry* knows the schemas of ids; without one, all values count as written with the reader's schema. *message* is
    the Protobuf message.
    """

    value_format: str
    wire_format: str
    reader: Schema
    message: str | None = None
    registry: RegistryOptions | None = None


class ValueFormat(Protocol):
    """Decodes values; *type* is the type of the results."""

    type: DataType

    def type_of(self, writer: Schema) -> DataType | None:
        """Return the type of values written with another schema; None if that is unknown."""

    def decode(self, payload: bytes, writer: Schema | None, drift: RecordDrift) -> Any:
        """Return a value as pyarrow takes it for the type; add its differences to *drift*. Raises DeadLetterError."""


class AvroFormat:
    """Avro; the writer's schema tells the differences."""

    def __init__(self, plan: DecodingPlan) -> None:
        self._avro = AvroDecoder(plan.reader)
        self.type = self._avro.type
        self.type_of: Callable[[Schema], DataType | None] = self._avro.type_of

    def decode(self, payload: bytes, writer: Schema | None, drift: RecordDrift) -> Any:
        return self._avro.decode(payload, writer)


class ProtobufFormat:
    """Protobuf; the writer's schema tells the differences, or else the field numbers that the reader does not know."""

    def __init__(self, plan: DecodingPlan) -> None:
        self._protobuf = ProtobufDecoder(plan.reader, plan.message, plan.wire_format == CONFLUENT)
        self.type = self._protobuf.type
        self.type_of: Callable[[Schema], DataType | None] = self._protobuf.type_of

    def decode(self, payload: bytes, writer: Schema | None, drift: RecordDrift) -> Any:
        value, unknown = self._protobuf.decode(payload, writer)
        if writer is None:
            drift.differs.update(f"{NEW} value.#{number}" for number in unknown)
        return value


class JsonFormat:
    """JSON by a type of Spark's or by a JSON Schema; each value tells its differences."""

    def __init__(self, plan: DecodingPlan) -> None:
        self._judge = JsonSchemaValidator(plan.reader) if plan.reader.kind == "JSON" else None
        self.type = self._judge.type if self._judge else parse_spark_type(plan.reader.text)
        self._read = make_reader(self.type)
        self._exact = needs_digits(self.type)

    def type_of(self, writer: Schema) -> DataType | None:
        return None

    def decode(self, payload: bytes, writer: Schema | None, drift: RecordDrift) -> Any:
        value = parse_json(payload, self._exact)
        if self._judge is None:
            return self._read(value, drift)
        self._judge.check(value)
        read = self._read(value, drift)
        # A column of text may stand for several types that the schema allows.
        drift.differs = {difference for difference in drift.differs if not difference.startswith(CHANGED)}
        return read


FORMATS: Mapping[str, Callable[[DecodingPlan], ValueFormat]] = {
    "json": JsonFormat,
    "avro": AvroFormat,
    "protobuf": ProtobufFormat,
}


def make_format(plan: DecodingPlan) -> ValueFormat:
    """Make the decoder; raises PipelineError if the schema cannot be used."""
    made = FORMATS[plan.value_format](plan)
    _refuse_twins(made.type, "value")
    return made


def parse_spark_type(text: str) -> DataType:
    """Parse the JSON of a DataType; raises PipelineError."""
    try:
        return _parse_datatype_json_string(text)
    except Exception as problem:
        raise PipelineError(f"{text[:80]!r} is no type of Spark's ({problem}): correct it") from problem


def _refuse_twins(kind: DataType, path: str) -> None:
    if isinstance(kind, StructType):
        seen: dict[str, str] = {}
        for field in kind.fields:
            if (first := seen.setdefault(field.name.lower(), field.name)) is not field.name:
                raise PipelineError(
                    f"{path} has {first} and {field.name}, which Spark takes for one: rename one of them"
                )
            _refuse_twins(field.dataType, f"{path}.{field.name}")
    elif isinstance(kind, ArrayType):
        _refuse_twins(kind.elementType, path)
    elif isinstance(kind, MapType):
        _refuse_twins(kind.valueType, path)
