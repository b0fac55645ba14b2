"""Avro's types as Spark's types, and conversions of fastavro's values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from spark_integration.validate.dead import shorten_value
from spark_integration.validate.shapes import Shape, array_of, json_text, map_of, struct_of

MOST_DIGITS = 38
UUID_BYTES = 16
EPOCH = datetime(1970, 1, 1)
EPOCH_UTC = EPOCH.replace(tzinfo=timezone.utc)


def _convert_instants(unit: timedelta, epoch: datetime) -> Any:
    """Return a converter of points in time; the writer's type may be a plain number."""
    return lambda value: epoch + value * unit if isinstance(value, int) else value


def _convert_clock_times(unit: timedelta) -> Any:
    """Return a converter of times of day to ISO 8601, since Spark has no type for them."""

    def convert(value: Any) -> str:
        clock: time = (EPOCH + value * unit).time() if isinstance(value, int) else value
        return clock.isoformat("microseconds")

    return convert


def _convert_uuid(value: Any) -> str:
    return str(UUID(bytes=value)) if isinstance(value, bytes) else str(value)


MILLIS, MICROS = timedelta(milliseconds=1), timedelta(microseconds=1)
TIME_SPAN = StructType([StructField(name, LongType()) for name in ("months", "days", "milliseconds")])


def _time_span(value: bytes) -> dict[str, int]:
    parts = (int.from_bytes(value[begin : begin + 4], "little") for begin in (0, 4, 8))
    return dict(zip(TIME_SPAN.names, parts, strict=True))


PRIMITIVE: Mapping[str, Shape] = {
    "null": Shape(StringType()),
    "boolean": Shape(BooleanType()),
    "int": Shape(IntegerType()),
    "long": Shape(LongType()),
    "float": Shape(FloatType()),
    "double": Shape(DoubleType()),
    "bytes": Shape(BinaryType()),
    "fixed": Shape(BinaryType()),
    "string": Shape(StringType()),
    "enum": Shape(StringType()),
}
# Other logical types, such as timestamp-nanos, keep their underlying type. Decimals are in _decimal.
LOGICAL: Mapping[tuple[str, str], Shape] = {
    ("int", "date"): Shape(DateType()),
    ("int", "time-millis"): Shape(StringType(), _convert_clock_times(MILLIS)),
    ("long", "time-micros"): Shape(StringType(), _convert_clock_times(MICROS)),
    ("long", "timestamp-millis"): Shape(TimestampType(), _convert_instants(MILLIS, EPOCH_UTC)),
    ("long", "timestamp-micros"): Shape(TimestampType(), _convert_instants(MICROS, EPOCH_UTC)),
    ("long", "local-timestamp-millis"): Shape(TimestampNTZType(), _convert_instants(MILLIS, EPOCH)),
    ("long", "local-timestamp-micros"): Shape(TimestampNTZType(), _convert_instants(MICROS, EPOCH)),
    ("string", "uuid"): Shape(StringType(), _convert_uuid),
    ("fixed", "uuid"): Shape(StringType(), _convert_uuid),
    ("fixed", "duration"): Shape(TIME_SPAN, _time_span),
}
# The Python types that fastavro returns for branches of a union without a name.
PYTHON: Mapping[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (float,),
    "double": (float,),
    "bytes": (bytes,),
    "string": (str,),
    "array": (list,),
    "map": (dict,),
}
PYTHON_LOGICAL: Mapping[tuple[str, str], tuple[type, ...]] = {
    ("int", "date"): (date,),
    ("int", "time-millis"): (time,),
    ("long", "time-micros"): (time,),
    ("string", "uuid"): (UUID,),
    ("bytes", "decimal"): (Decimal,),
    **{("long", name): (datetime,) for _, name in LOGICAL if "timestamp" in name},
}
RECORDS = ("record", "error")
NAMED = (*RECORDS, "enum", "fixed")
Fits = Callable[[Any], bool]


def has_named_unions(schema: Any) -> bool:
    """Return whether a union with several branches has a named type, so that fastavro must report the branch it read."""
    if isinstance(schema, list):
        branches = [branch for branch in schema if branch != "null"]
        named = [branch for branch in branches if _name_kind(branch) in NAMED or _name_kind(branch) not in PYTHON]
        return (len(branches) > 1 and bool(named)) or any(has_named_unions(branch) for branch in branches)
    if isinstance(schema, dict):
        inner = [field["type"] for field in schema.get("fields", ())]
        inner += [schema[name] for name in ("items", "values", "type") if isinstance(schema.get(name), (dict, list))]
        return any(has_named_unions(part) for part in inner)
    return False


def _name_kind(schema: Any) -> str:
    return str(schema["type"]) if isinstance(schema, dict) else str(schema)


class AvroShapes:
    """Makes shapes of schemas. A type within itself becomes JSON text, since Spark's types cannot be recursive.

    *is_deep* says that there was one, so that values may be nested to any depth.
    """

    def __init__(self, named: Mapping[str, Any], tells_names: bool) -> None:
        self._named = named
        self._tells_names = tells_names
        self._within: list[str] = []
        self.is_deep = False

    def of(self, schema: Any) -> Shape:
        """Return the shape of a schema that fastavro has parsed."""
        if isinstance(schema, list):
            return self._make_union_shape(schema)
        if isinstance(schema, str):
            return PRIMITIVE[schema] if schema in PRIMITIVE else self.of(self._named[schema])
        kind = schema["type"]
        if not isinstance(kind, str):
            return self.of(kind)
        shape = self._make_shape(kind, schema)
        return _unwrap_name(shape) if self._tells_names and kind in NAMED else shape

    def _make_shape(self, kind: str, schema: Mapping[str, Any]) -> Shape:
        if kind in RECORDS:
            return self._make_record_shape(schema)
        if kind == "array":
            if not self._takes_bytes(schema["items"]):
                # Such an array is nothing but a count, and fastavro would make a list of that length.
                raise ValueError("it has an array whose items take no bytes")
            return array_of(self.of(schema["items"]))
        if kind == "map":
            return map_of(self.of(schema["values"]))
        logical = schema.get("logicalType")
        if logical == "decimal":
            return _make_decimal_shape(kind, schema)
        return LOGICAL.get((kind, str(logical))) or PRIMITIVE.get(kind) or self.of(self._named[kind])

    def _make_record_shape(self, schema: Mapping[str, Any]) -> Shape:
        name = schema["name"]
        self.is_deep |= name in self._within
        if name in self._within or not schema["fields"]:
            return json_text()
        self._within.append(name)
        try:
            return struct_of([(field["name"], self.of(field["type"])) for field in schema["fields"]])
        finally:
            self._within.pop()

    def _takes_bytes(self, schema: Any) -> bool:
        if isinstance(schema, list):
            return True
        whole = self._find_whole(schema)
        kind = whole["type"]
        if kind in RECORDS:
            return any(self._takes_bytes(field["type"]) for field in whole["fields"])
        if kind == "fixed":
            return bool(whole["size"])
        return kind != "null" if isinstance(kind, str) and kind not in self._named else self._takes_bytes(kind)

    def _make_union_shape(self, schema: list[Any]) -> Shape:
        branches = [branch for branch in schema if branch != "null"]
        kinds = {
            _name_kind(branch) for branch in branches if not (isinstance(branch, dict) and "logicalType" in branch)
        }
        if len(branches) == 1:
            return self.of(branches[0])
        if len(kinds) == len(branches):
            for numbers, joined in (({"int", "long"}, LongType()), ({"float", "double"}, DoubleType())):
                if kinds <= numbers:
                    return Shape(joined)
        return self._make_member_shape(branches)

    def _make_member_shape(self, branches: list[Any]) -> Shape:
        """Return a struct with a field for each branch, one of which is not null (as in Spark's own from_avro)."""
        shapes = [self.of(branch) for branch in branches]
        # Python has one type for int and long, and one for float and double: the wider one holds both.
        order = sorted(enumerate(branches), key=lambda entry: _name_kind(entry[1]) in ("int", "float"))
        tests = [(fits(self._find_whole(branch)), number) for fits in FITS for number, branch in order]
        kind = StructType([StructField(f"member{number}", shape.type) for number, shape in enumerate(shapes)])

        def convert(value: Any) -> dict[str, Any]:
            for fit, number in tests:
                if fit(value):
                    made = shapes[number].convert
                    return {f"member{number}": value if made is None else made(value)}
            raise ValueError(f"{shorten_value(value)} is no branch of the union")

        return Shape(kind, convert)

    def _find_whole(self, branch: Any) -> Mapping[str, Any]:
        if isinstance(branch, str):
            return {"type": branch} if branch in PRIMITIVE else self._find_whole(self._named[branch])
        whole: Mapping[str, Any] = branch
        return whole


def _is_named(schema: Mapping[str, Any]) -> Fits:
    """Return a test for values that fastavro marks with this type's name."""
    name = schema.get("name")
    return lambda value: type(value) is tuple and value[0] == name


def _is_record(schema: Mapping[str, Any]) -> Fits:
    names = {field["name"] for field in schema.get("fields", ())}
    return lambda value: schema["type"] in RECORDS and type(value) is dict and value.keys() == names


def _is_plain(schema: Mapping[str, Any]) -> Fits:
    made = PYTHON_LOGICAL.get((schema["type"], str(schema.get("logicalType"))), PYTHON.get(schema["type"], ()))
    return lambda value: type(value) in made


def _is_bare(schema: Mapping[str, Any]) -> Fits:
    """Return a test for values of a named type that fastavro does not mark, because the writer knew no union."""
    if schema["type"] == "enum":
        return lambda value: value in schema["symbols"]
    return lambda value: schema["type"] == "fixed" and isinstance(value, (bytes, Decimal))


def _is_raw(schema: Mapping[str, Any]) -> Fits:
    """Return a test for values of a logical type that the writer did not know."""
    return lambda value: type(value) in PYTHON.get(schema["type"], ())


# The order in which the branches of a union are tried on a value.
FITS = (_is_named, _is_record, _is_plain, _is_bare, _is_raw)


def _unwrap_name(shape: Shape) -> Shape:
    """Remove fastavro's mark of the type's name from values."""
    convert = shape.convert

    def bare(value: Any) -> Any:
        inner = value[1] if type(value) is tuple else value
        return inner if convert is None or inner is None else convert(inner)

    return Shape(shape.type, bare)


def _make_decimal_shape(kind: str, schema: Mapping[str, Any]) -> Shape:
    precision, scale = int(schema["precision"]), int(schema.get("scale", 0))
    if kind not in ("bytes", "fixed"):
        return PRIMITIVE[kind]

    def convert(value: Any) -> Decimal:
        if isinstance(value, Decimal):
            return value
        unscaled = int.from_bytes(value, "big", signed=True)
        return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))

    if precision > MOST_DIGITS:
        return Shape(StringType(), lambda value: str(convert(value)))
    return Shape(DecimalType(precision, scale), convert)
