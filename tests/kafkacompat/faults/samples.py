"""A request of every API and version, with an element in each of its lists, built from the declarations."""

from __future__ import annotations

from typing import Any

from kafkacompat.wire.apis import find_api
from kafkacompat.wire.compiler import find_reader, find_writer
from kafkacompat.wire.entities import TOPIC, TOPIC_ID
from kafkacompat.wire.schema import Field, Response, Struct

TOPIC_NAMES = ("t", "u")
TOPIC_IDS = (b"t" * 16, b"u" * 16)
PARTITIONS = (0, 1)
NUMBERS = ("int8", "int16", "uint16", "int32", "uint32", "int64")


def make_request(api_key: int, version: int) -> Any:
    """Return a request with two topics, each with two partitions."""
    return _fill(find_api(api_key).request, version, 0)


def _fill(of: type[Struct], version: int, position: int) -> Any:
    build: Any = of
    return build(
        **{
            name: _make_value(field, version, position)
            for name, field in of.FIELDS.items()
            if version in field.versions and field.tag is None
        }
    )


def _make_value(field: Field, version: int, position: int) -> Any:
    if field.entity == TOPIC and field.kind == "string":
        return TOPIC_NAMES[position]
    if field.entity == TOPIC_ID:
        return TOPIC_IDS[position]
    if field.element is not None:
        return [_make_value(field.element, version, number) for number in PARTITIONS]
    if field.struct is not None:
        return _fill(field.struct, version, position)
    if field.kind in NUMBERS:
        return position
    return {
        "string": f"text {position}",
        "bytes": b"",
        "records": None,
        "bool": False,
        "float64": 0.0,
        "uuid": bytes(16),
    }[field.kind]


def list_error_codes(message: Struct, version: int) -> list[int]:
    """Return the error codes in a response, at any depth."""
    codes = []
    for name, field in message.FIELDS.items():
        value = getattr(message, name)
        if version not in field.versions or value is None:
            continue
        if name.endswith("error_code") and name != "topic_config_error_code":
            codes.append(int(value))
        elif isinstance(value, Struct):
            codes += list_error_codes(value, version)
        elif field.element is not None and field.element.struct is not None:
            codes += [code for item in value for code in list_error_codes(item, version)]
    return codes


def encode_response(response: Response, version: int) -> Any:
    """Return a response as its client reads it."""
    data = b"".join(bytes(part) for part in find_writer(type(response), version)(response))  # type: ignore[arg-type]
    return find_reader(type(response), version)(memoryview(data), 0)[0]
