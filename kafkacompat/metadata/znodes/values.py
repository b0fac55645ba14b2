"""Reading and writing the JSON objects in znodes: every field is checked, and unknown fields survive a change."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from reprlib import Repr
from typing import Any, NoReturn, TypeGuard

from kafkacompat.metadata.store import StoreError

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MAX = 2**63 - 1

_ENCODER = json.JSONEncoder(separators=(",", ":"))
_WHOLE_NUMBER = re.compile(rb"-?[0-9]{1,19}", re.ASCII)
_PARTITION = re.compile("0|[1-9][0-9]{0,9}", re.ASCII)
_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 60


def build_damage_error(path: str, problem: str) -> StoreError:
    """Build the error for a value that does not have the form that its path requires."""
    advice = (
        "restore it, or, on a single node, move the metadata's file away to take over what the log directories hold"
    )
    return StoreError(f"the metadata is damaged at {path}: {problem}; {advice}")


def quote_name(name: str) -> str:
    """Quote a name for a message, however long it is and whatever characters it has."""
    return json.dumps(name[:60])


def encode_json(value: Mapping[str, Any]) -> bytes:
    """Encode a JSON object."""
    return _ENCODER.encode(value).encode()


class Fields:
    """The JSON object in the znode at ``path``; its methods return one checked field and raise StoreError.

    A field without a default is required. With ``secret`` set, no message shows a value.
    """

    def __init__(self, path: str, values: Mapping[str, Any], secret: bool = False) -> None:
        self.path = path
        self.values = values
        self._secret = secret

    def integer(self, name: str, default: int | None = None, *, low: int = INT32_MIN, high: int = INT32_MAX) -> int:
        """Return a whole number from *low* to *high*."""
        value = self._value(name, default)
        if not _is_integer(value, low, high):
            self._refuse(name, value, f"a whole number from {low} to {high}")
        return int(value)

    def text(self, name: str, default: str | None = None) -> str:
        """Return a string."""
        value = self._value(name, default)
        if not _is_text(value):
            self._refuse(name, value, "a text")
        return str(value)

    def texts(self, name: str) -> list[str]:
        """Return a list of strings."""
        value = self._value(name, None)
        if not isinstance(value, list) or not all(map(_is_text, value)):
            self._refuse(name, value, "a list of texts")
        return list(value)

    def text_by_name(self, name: str, default: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return an object whose values are strings."""
        value = self._value(name, default)
        if not isinstance(value, Mapping) or not all(map(_is_text, (*value, *value.values()))):
            self._refuse(name, value, "an object of texts")
        return dict(value)

    def node_ids(self, name: str) -> tuple[int, ...]:
        """Return a list of brokers' ids, without duplicates."""
        value = self._value(name, None)
        if not isinstance(value, list) or not all(_is_integer(node_id, 0, INT32_MAX) for node_id in value):
            self._refuse(name, value, "a list of broker ids")
        if len(set(value)) != len(value):
            self._refuse(name, value, "a list of different broker ids")
        return tuple(value)

    def nested(self, name: str, default: Mapping[str, Any] | None = None) -> Fields:
        """Return an object."""
        value = self._value(name, default)
        if not isinstance(value, Mapping):
            self._refuse(name, value, "an object")
        return Fields(self.path, value, self._secret)

    def nested_list(self, name: str) -> Iterator[Fields]:
        """Yield the objects of a list."""
        value = self._value(name, None)
        if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
            self._refuse(name, value, "a list of objects")
        return (Fields(self.path, item, self._secret) for item in value)

    def partition_numbers(self) -> list[int]:
        """Return the fields' names as partitions, which are numbered from 0 without gaps."""
        names = [name for name in self.values if _PARTITION.fullmatch(name)]
        numbers = sorted(map(int, names))
        if len(names) != len(self.values) or numbers != list(range(len(numbers))):
            raise build_damage_error(self.path, "the partitions are not numbered from 0 without gaps")
        return numbers

    def _value(self, name: str, default: object) -> Any:
        value = self.values.get(name)
        if value is None and default is None:
            raise build_damage_error(self.path, f"it has no {quote_name(name)}")
        return default if value is None else value

    def _refuse(self, name: str, value: object, expected: str) -> NoReturn:
        shown = "is not" if self._secret else f"is {_SHORT.repr(value)}, not"
        raise build_damage_error(self.path, f"{quote_name(name)} {shown} {expected}")


def _is_integer(value: object, low: int, high: int) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def parse_json(path: str, value: bytes) -> Any:
    """Parse a znode's JSON value; raises StoreError."""
    try:
        parsed = json.loads(value, parse_constant=_refuse_constant)
        if b"\\u" in value:
            # An escape may be half of a surrogate pair, which no response to a client can carry.
            json.dumps(parsed, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as problem:
        raise build_damage_error(path, f"it is no JSON: {_describe_problem(problem)}") from problem
    return parsed


def _describe_problem(problem: Exception) -> str:
    """Describe why a value is no JSON, without showing any part of it."""
    if isinstance(problem, UnicodeError):
        return "it has bytes that are no text"
    return "it is nested too deeply" if isinstance(problem, RecursionError) else str(problem)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def parse_fields(path: str, value: bytes, *, secret: bool = False) -> Fields:
    """Parse a znode's JSON object; raises StoreError."""
    values = parse_json(path, value)
    if not isinstance(values, dict):
        raise build_damage_error(path, "it is no JSON object")
    return Fields(path, values, secret)


def parse_number(path: str, value: bytes, *, low: int, high: int) -> int:
    """Parse a znode's value of decimal digits; raises StoreError."""
    if not _WHOLE_NUMBER.fullmatch(value) or not low <= int(value) <= high:
        raise build_damage_error(path, f"it is {_SHORT.repr(value)}, not a whole number from {low} to {high}")
    return int(value)


def parse_text(path: str, value: bytes) -> str:
    """Parse a znode's value of UTF-8; raises StoreError."""
    try:
        return value.decode()
    except UnicodeDecodeError as problem:
        raise build_damage_error(path, "it has bytes that are no text") from problem


class Schema:
    """The fields of a JSON object besides "version", and the version that this release writes."""

    def __init__(self, version: int, *fields: str) -> None:
        self.version = version
        self._known = {"version", *fields}

    def encode(self, path: str, values: Mapping[str, Any], before: bytes | None = None) -> bytes:
        """Encode *values* over the stored object *before*.

        Fields that this release does not know and a newer version stay; known fields that are not in *values* go. Raises
        StoreError if *before* is no JSON object.
        """
        if not before:
            return encode_json({"version": self.version, **values})
        stored = parse_fields(path, before).values
        unknown = {name: value for name, value in stored.items() if name not in self._known}
        return encode_json({"version": self._find_newer_version(stored), **values, **unknown})

    def is_foreign(self, stored: Fields) -> bool:
        """Return whether an object has fields that this release does not know, or a newer version."""
        return not self._known.issuperset(stored.values) or self._find_newer_version(stored.values) != self.version

    def _find_newer_version(self, stored: Mapping[str, Any]) -> int:
        version = stored.get("version")
        return version if _is_integer(version, self.version, INT32_MAX) else self.version
