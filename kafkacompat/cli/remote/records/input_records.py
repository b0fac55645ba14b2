"""Records of `kafkacompat produce`, read from lines of text, lines of JSON, or whole files."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, Any, NamedTuple

from kafkacompat.cli.remote.records.decoding import BASE64, format_json, load_json

MOST_RECORD_BYTES = 100 * 1024 * 1024
"""Brokers accept no larger request by default (socket.request.max.bytes)."""
STEP_BYTES = 1 << 18
_FIELDS = {"key", f"key{BASE64}", "value", f"value{BASE64}", "headers", "partition", "timestamp"}
_IGNORED = {"topic", "offset", "timestamp_type", "key_schema_id", "value_schema_id"}
"""What `kafkacompat consume --json` also writes."""
_MAX_PARTITION, _MAX_TIMESTAMP = 2**31 - 1, 2**63 - 1

Headers = list[tuple[str, "bytes | None"]]


class NewRecord(NamedTuple):
    """A record to produce; *partition* and *timestamp* (ms) are those of librdkafka's defaults if the input says nothing."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers | None = None
    partition: int = -1
    timestamp: int = 0


Step = Callable[[int], object]
"""Receives the count of bytes that were read since the last step."""
Parse = Callable[[bytes], NewRecord]
"""Parses a line without its end; raises ValueError, whose text is a predicate of the line."""


class InputError(ValueError):
    """The input cannot be read as records from here on; the text is one sentence."""


def parse_lines(stream: IO[bytes], source: str, step: Step, parse: Parse) -> Iterator[NewRecord]:
    """Yield the record of each line, whose end is cut off as Kafka's console producer does.

    Raises InputError, which names the line. *step* receives the count of bytes now and then.
    """
    waiting_bytes = 0
    for number, line in enumerate(iter(partial(stream.readline, MOST_RECORD_BYTES + 1), b""), 1):
        waiting_bytes += len(line)
        if waiting_bytes > STEP_BYTES:
            if len(line) > MOST_RECORD_BYTES:
                raise InputError(f"{source}, line {number}, has more than {MOST_RECORD_BYTES} bytes: split it")
            step(waiting_bytes)
            waiting_bytes = 0
        try:
            yield parse(line[:-2] if line.endswith(b"\r\n") else line.removesuffix(b"\n"))
        except ValueError as problem:
            raise InputError(f"{source}, line {number}, {problem}") from None
    step(waiting_bytes)


def read_whole(stream: IO[bytes], source: str, step: Step) -> bytes:
    """Return the contents of a file as one value; raises InputError if it is too large."""
    content = stream.read(MOST_RECORD_BYTES + 1)
    step(len(content))
    if len(content) > MOST_RECORD_BYTES:
        raise InputError(
            f"{source} has more than {MOST_RECORD_BYTES} bytes, which no broker accepts as one record: split it"
        )
    return content


def make_text_parser(separator: bytes | None, null_marker: bytes | None, constant: NewRecord) -> Parse:
    """Return a parser of lines: a value, or a key and a value. *constant* has what all records share."""
    _, constant_key, *others = constant
    make = NewRecord._make

    def parse_value(line: bytes) -> NewRecord:
        return make((None if line == null_marker else line, constant_key, *others))

    def parse_key_and_value(line: bytes) -> NewRecord:
        key, delimiter, value = line.partition(separator or b"")
        if not delimiter:
            shown = (separator or b"").decode("utf-8", "backslashreplace")
            raise ValueError(f"has no {shown!r} between a key and a value: check --key-separator")
        return make((None if value == null_marker else value, None if key == null_marker else key, *others))

    return parse_value if separator is None else parse_key_and_value


def make_json_parser(constant: NewRecord) -> Parse:
    """Return a parser of lines of JSON, each an object with the fields of a record."""

    def parse_json(line: bytes) -> NewRecord:
        try:
            fields = load_json(line)
        except (ValueError, RecursionError):
            raise ValueError(
                "is no JSON: each line is an object with key, value, headers, partition, timestamp"
            ) from None
        if not isinstance(fields, dict):
            raise ValueError(f"is a JSON {type(fields).__name__}, not an object with key, value, headers and others")
        if unknown := fields.keys() - _FIELDS - _IGNORED:
            raise ValueError(f"has the unknown field {min(unknown)!r}: choose from {', '.join(sorted(_FIELDS))}")
        return _make_record(fields, constant)

    return parse_json


def _make_record(fields: dict[str, Any], constant: NewRecord) -> NewRecord:
    key = read_content(fields, "key")
    headers = [*(constant.headers or ()), *_read_headers(fields.get("headers"))]
    return NewRecord(
        read_content(fields, "value"),
        constant.key if key is None else key,
        headers or None,
        _read_number(fields, "partition", _MAX_PARTITION, constant.partition),
        _read_number(fields, "timestamp", _MAX_TIMESTAMP, constant.timestamp),
    )


def read_content(fields: dict[str, Any], name: str) -> bytes | None:
    """Return the bytes of a field: text, bytes in base64, or any other JSON as compact JSON. Raises ValueError."""
    if name + BASE64 in fields:
        try:
            return base64.b64decode(fields[name + BASE64], validate=True)
        except (TypeError, ValueError, binascii.Error):
            raise ValueError(f"has {name}{BASE64} that is no base64") from None
    value = fields.get(name)
    if value is None:
        return None
    text = value if isinstance(value, str) else format_json(value)
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"has {name} with half a surrogate pair, which is no text") from None


def _read_headers(headers: Any) -> Headers:
    if headers is None:
        return []
    if isinstance(headers, dict):
        headers = [{"name": name, "value": value} for name, value in headers.items()]
    if not isinstance(headers, list):
        raise ValueError("has headers that are neither an object nor a list")
    parsed: Headers = []
    for header in headers:
        if not isinstance(header, dict) or not isinstance(header.get("name"), str):
            raise ValueError('has a header without a name: write {"name": ..., "value": ...}')
        if reason := explain_header_name(header["name"]):
            raise ValueError(f"has the header {header['name']!r}, whose name {reason}")
        parsed.append((header["name"], read_content(header, "value")))
    return parsed


def explain_header_name(name: str) -> str:
    """Return why librdkafka cannot send a header of this name, "" if it can: it would crash at one, and cut off another."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return "is no UTF-8"
    return "has a NUL character" if "\0" in name else ""


def _read_number(fields: dict[str, Any], name: str, largest: int, default: int) -> int:
    value = fields.get(name)
    if value is None:
        return default
    if type(value) is not int or not 0 <= value <= largest:
        raise ValueError(f"has the {name} {value!r}, which is no whole number from 0 to {largest}")
    return value
