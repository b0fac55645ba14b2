"""Protobuf: its types as Spark's types, and values decoded by the protobuf package."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from google.protobuf import json_format, message_factory
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.unknown_fields import UnknownFieldSet
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from spark_integration.errors import PipelineError
from spark_integration.validate.dead import DeadLetterError
from spark_integration.validate.framing import split_message_indexes
from spark_integration.validate.protoc import compile_schema, messages_at, parse_descriptors, top_level_messages
from spark_integration.validate.registry import Schema
from spark_integration.validate.settings import DESCRIPTORS
from spark_integration.validate.shapes import Shape

Read = Callable[[Any], Any]

SCALAR: Mapping[int, Shape] = {
    FieldDescriptor.TYPE_INT32: Shape(IntegerType()),
    FieldDescriptor.TYPE_SINT32: Shape(IntegerType()),
    FieldDescriptor.TYPE_SFIXED32: Shape(IntegerType()),
    FieldDescriptor.TYPE_UINT32: Shape(LongType()),
    FieldDescriptor.TYPE_FIXED32: Shape(LongType()),
    FieldDescriptor.TYPE_INT64: Shape(LongType()),
    FieldDescriptor.TYPE_SINT64: Shape(LongType()),
    FieldDescriptor.TYPE_SFIXED64: Shape(LongType()),
    FieldDescriptor.TYPE_UINT64: Shape(DecimalType(20, 0), Decimal),
    FieldDescriptor.TYPE_FIXED64: Shape(DecimalType(20, 0), Decimal),
    FieldDescriptor.TYPE_FLOAT: Shape(FloatType()),
    FieldDescriptor.TYPE_DOUBLE: Shape(DoubleType()),
    FieldDescriptor.TYPE_BOOL: Shape(BooleanType()),
    FieldDescriptor.TYPE_STRING: Shape(StringType()),
    FieldDescriptor.TYPE_BYTES: Shape(BinaryType()),
}


def _to_micros(value: Any) -> int:
    return int(value.seconds) * 1_000_000 + int(value.nanos) // 1_000


def _make_json_converter(pool: DescriptorPool) -> Read:
    """Return a converter of messages to JSON; *pool* has the messages that an Any may hold."""

    def convert(value: Any) -> str:
        if str(value.DESCRIPTOR.full_name) == ANY and not _is_known(value, pool):
            return json.dumps({"@type": value.type_url, "value": base64.b64encode(value.value).decode()})
        return str(
            json_format.MessageToJson(value, indent=None, preserving_proto_field_name=True, descriptor_pool=pool)
        )

    return convert


def _is_known(value: Any, pool: DescriptorPool) -> bool:
    try:
        pool.FindMessageTypeByName(value.type_url.rpartition("/")[2])
    except KeyError:
        return not value.type_url
    return True


def _wrapper_shape(shape: Shape) -> Shape:
    convert = shape.convert or (lambda value: value)
    return Shape(shape.type, lambda message: convert(message.value))


WELL_KNOWN: Mapping[str, Shape] = {
    "google.protobuf.Timestamp": Shape(TimestampType(), _to_micros),
    "google.protobuf.Duration": Shape(DayTimeIntervalType(), _to_micros),
    "google.protobuf.DoubleValue": _wrapper_shape(SCALAR[FieldDescriptor.TYPE_DOUBLE]),
    "google.protobuf.FloatValue": _wrapper_shape(SCALAR[FieldDescriptor.TYPE_FLOAT]),
    "google.protobuf.Int64Value": _wrapper_shape(SCALAR[FieldDescriptor.TYPE_INT64]),
    "google.protobuf.UInt64Value": _wrapper_shape(SCALAR[FieldDescriptor.TYPE_UINT64]),
    "google.protobuf.Int32Value": _wrapper_shape(SCALAR[FieldDescriptor.TYPE_INT32]),
    "google.protobuf.UInt32Value": _wrapper_shape(SCALAR[FieldDescriptor.TYPE_UINT32]),
    "google.protobuf.BoolValue": _wrapper_shape(SCALAR[FieldDescriptor.TYPE_BOOL]),
    "google.protobuf.StringValue": _wrapper_shape(SCALAR[FieldDescriptor.TYPE_STRING]),
    "google.protobuf.BytesValue": _wrapper_shape(SCALAR[FieldDescriptor.TYPE_BYTES]),
}
ANY = "google.protobuf.Any"
AS_JSON = (ANY, "google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue")


def schema_descriptors(schema: Schema) -> FileDescriptor:
    """Return the file of a schema; of *kind* DESCRIPTORS the text is a FileDescriptorSet as Latin-1."""
    return parse_descriptors(schema.text.encode("latin-1")) if schema.kind == DESCRIPTORS else compile_schema(schema)


class ProtobufDecoder:
    """Decodes values as the message *name* of *reader*, by default its first one.

    Protobuf resolves versions by field numbers: fields that the reader does not know are left out. *framed*: the
    payload begins with message indexes, which name a message of the schema that it was written with.
    """

    def __init__(self, reader: Schema, name: str | None, framed: bool) -> None:
        self._file = schema_descriptors(reader)
        self._message = _find_message(self._file, name)
        self._class: Any = message_factory.GetMessageClass(self._message)
        self._framed = framed
        shape = _ProtobufShapes(self._file.pool).make_shape(self._message)
        self._read: Read = shape.convert or (lambda value: value)
        self.type: DataType = shape.type

    def type_of(self, writer: Schema) -> DataType | None:
        """Return the type of this message in *writer*, None if it lacks the message; raises PipelineError."""
        pool = schema_descriptors(writer).pool
        try:
            return _ProtobufShapes(pool).make_shape(pool.FindMessageTypeByName(self._message.full_name)).type
        except KeyError:
            return None

    def decode(self, payload: bytes, writer: Schema | None) -> tuple[Any, list[int]]:
        """Decode a value; return it and the numbers of fields that the reader does not know; raises DeadLetterError."""
        if self._framed:
            indexes, payload = split_message_indexes(payload)
            self._check_message(writer, indexes)
        try:
            message = self._class.FromString(payload)
            if not message.IsInitialized():
                raise DeadLetterError("malformed", f"lacks required fields: {message.FindInitializationErrors()}")
            return self._read(message), sorted({field.field_number for field in UnknownFieldSet(message)})
        except DeadLetterError:
            raise
        except Exception as problem:
            # A message may hold values without JSON: a number that is not finite, a time before the year 1.
            raise DeadLetterError("malformed", f"is no {self._message.full_name}: {problem}") from None

    def _check_message(self, writer: Schema | None, indexes: tuple[int, ...]) -> None:
        file = schema_descriptors(writer) if writer is not None else self._file
        names = [str(message.full_name) for message in messages_at(file, indexes)]
        if not names:
            raise DeadLetterError("malformed", f"names message {list(indexes)}, which its schema lacks")
        if self._message.full_name not in names:
            raise DeadLetterError("other-message", f"holds {names[0]}, not {self._message.full_name}")


def _find_message(file: FileDescriptor, name: str | None) -> Descriptor:
    known = top_level_messages(file)
    if name is None and known:
        return known[0]
    try:
        return file.pool.FindMessageTypeByName(name or "")
    except KeyError:
        names = ", ".join(str(message.full_name) for message in known) or "none"
        raise PipelineError(f"the Protobuf schema has no message {name}: choose from {names}") from None


class _ProtobufShapes:
    """Makes shapes of messages. A message within itself becomes JSON text, since Spark's types cannot be recursive."""

    def __init__(self, pool: DescriptorPool) -> None:
        self._within: list[str] = []
        self._text = Shape(StringType(), _make_json_converter(pool))

    def make_shape(self, message: Descriptor) -> Shape:
        name = str(message.full_name)
        if name in WELL_KNOWN:
            return WELL_KNOWN[name]
        # Spark writes no struct without fields.
        if name in AS_JSON or name in self._within or not message.fields:
            return self._text
        self._within.append(name)
        try:
            fields = [(field.name, *self._read_field(field)) for field in message.fields]
        finally:
            self._within.pop()
        reads = [(name, read) for name, _, read in fields]
        kind = StructType([StructField(name, kind) for name, kind, _ in fields])
        return Shape(kind, lambda value: {name: read(value) for name, read in reads})

    def _read_field(self, field: FieldDescriptor) -> tuple[DataType, Read]:
        name = field.name
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            return self._read_map(name, field.message_type)
        shape = self._make_single_shape(field)
        convert = shape.convert
        if field.is_repeated:
            if convert is None:
                return ArrayType(shape.type), lambda value: list(getattr(value, name))
            return ArrayType(shape.type), lambda value: [convert(item) for item in getattr(value, name)]
        made = convert or (lambda content: content)
        if field.has_presence:
            return shape.type, lambda value: made(getattr(value, name)) if value.HasField(name) else None
        return shape.type, lambda value: made(getattr(value, name))

    def _read_map(self, name: str, entry: Descriptor) -> tuple[DataType, Read]:
        key, content = (self._make_single_shape(entry.fields_by_name[part]) for part in ("key", "value"))
        made_key, made = (shape.convert or (lambda content: content) for shape in (key, content))
        kind = MapType(key.type, content.type)
        return kind, lambda value: [
            (made_key(entry_key), made(entry_value)) for entry_key, entry_value in getattr(value, name).items()
        ]

    def _make_single_shape(self, field: FieldDescriptor) -> Shape:
        if field.message_type is not None:
            return self.make_shape(field.message_type)
        return _enum_shape(field.enum_type) if field.enum_type is not None else SCALAR[field.type]


def _enum_shape(enum: EnumDescriptor) -> Shape:
    """Return the shape of an enum: the names of its values, or the number as text if it has no name."""
    names = {number: str(value.name) for number, value in enum.values_by_number.items()}
    return Shape(StringType(), lambda number: names.get(number, str(number)))
