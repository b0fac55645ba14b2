"""The types of property values, the rules for values, and their text form.

Types and spelling are those of Kafka's ConfigDef: numbers are decimal, commas separate the elements of lists, and blanks around
a value or an element do not belong to it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

Value: TypeAlias = "bool | int | float | str | tuple[str, ...] | None"

BLANKS = "".join(map(chr, range(33)))
_COMMA = re.compile(r"\s*,\s*")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_REAL = re.compile(r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)[fFdD]?")
_RESET = re.compile(r"latest|earliest|by_duration:P(?=.)([0-9]+D)?(T(?=.)([0-9]+H)?([0-9]+M)?([0-9]+(\.[0-9]+)?S)?)?")
_RANGE = re.compile(r"(-?[0-9.]*[0-9])\.\.(-?[0-9.]*[0-9])?")

BITS = {"short": 16, "int": 32, "long": 64}
WORDS = {
    "boolean": "true or false",
    "short": "a whole number of 16 bits",
    "int": "a whole number of 32 bits",
    "long": "a whole number of 64 bits",
    "double": "a number",
    "string": "text",
    "class": "the name of a class",
    "password": "text",
    "list": "a list separated by commas",
}


def parse_value(kind: str, text: str) -> Value:
    """Parse *text* as a value of type *kind*; raises ValueError when it is not one."""
    return _PARSERS[kind](text.strip(BLANKS))


def _parse_boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def _whole_parser(bits: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        # Twenty characters hold any number of 64 bits; int() would take long for a very long text.
        if len(text) > 20 or not _WHOLE.fullmatch(text) or not -(1 << bits - 1) <= int(text) < 1 << bits - 1:
            raise ValueError(text)
        return int(text)

    return parse


def _parse_double(text: str) -> float:
    if not _REAL.fullmatch(text):
        raise ValueError(text)
    return float(text.rstrip("fFdD") if text[-1] in "fFdD" else text)


def _parse_list(text: str) -> tuple[str, ...]:
    return tuple(_COMMA.split(text)) if text else ()


_PARSERS: dict[str, Callable[[str], Value]] = {
    "boolean": _parse_boolean,
    **{kind: _whole_parser(bits) for kind, bits in BITS.items()},
    "double": _parse_double,
    "list": _parse_list,
    "string": str,
    "class": str,
    "password": str,
}


def format_value(value: Value) -> str | None:
    """Format a value as Kafka's tools show it; None stays None."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return _format_double(value) if isinstance(value, float) else str(value)


def _format_double(value: float) -> str:
    """Format a double as Java does: plain from 0.001 to ten million, otherwise as 1.0E10."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    shortest = next(text for digits in range(18) if float(text := f"{value:.{digits}e}") == value)
    mantissa, _, exponent = shortest.partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


class Rule(NamedTuple):
    """A rule for values of one type; ``words`` completes "it takes ...".

    ``unique`` drops the repetitions of a list before the check, as Kafka does.
    """

    allows: Callable[[Value], bool]
    words: str
    unique: bool = False


def parse_rule(kind: str, allowed: str) -> Rule:
    """Parse the column *allowed* of a table of properties.

    ====================  ==========================================================
    ``1..``, ``1..9``     a number in this range, both ends included
    ``a, b``              one of these words
    ``any case: a, b``    one of these words in upper or lower case
    ``any of: a, b``      a list of some, all or none of these words; repetitions are dropped
    ``some of: a, b``     the same, with at least one word
    ``distinct``          a list without empty elements; repetitions are dropped
    ``distinct, some``    the same, with at least one element
    a key of ``RULES``    the rule of that key
    ====================  ==========================================================
    """
    if allowed in RULES:
        return RULES[allowed]
    if match := _RANGE.fullmatch(allowed):
        return _range_rule(kind, match[1], match[2])
    prefix, _, names = allowed.rpartition(": ")
    return _WORD_RULES[prefix](tuple(names.split(", ")))


def _range_rule(kind: str, low: str, high: str | None) -> Rule:
    noun = "a number" if kind == "double" else "a whole number"
    least, most = float(low), float(high or "inf")
    words = f"{noun} from {low} to {high}" if high else f"{noun} of {low} or more"
    return Rule(lambda value: isinstance(value, (int, float)) and least <= value <= most, words)


def _one_of_rule(names: tuple[str, ...]) -> Rule:
    return Rule(lambda value: value in names, f"one of {', '.join(names)}")


def _any_case_rule(names: tuple[str, ...]) -> Rule:
    return Rule(lambda value: str(value).upper() in names, f"one of {', '.join(names)}")


def _any_of_rule(names: tuple[str, ...]) -> Rule:
    return Rule(lambda value: set(_items_of(value)) <= set(names), f"a list of {', '.join(names)}", unique=True)


def _some_of_rule(names: tuple[str, ...]) -> Rule:
    rule = _any_of_rule(names)
    words = f"a list of one or more of {', '.join(names)}"
    return Rule(lambda value: bool(value) and rule.allows(value), words, unique=True)


_WORD_RULES = {"": _one_of_rule, "any case": _any_case_rule, "any of": _any_of_rule, "some of": _some_of_rule}


def _items_of(value: Value) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()


def _has_no_empty_item(value: Value) -> bool:
    return "" not in _items_of(value)


def _items_match(pattern: str) -> Callable[[Value], bool]:
    compiled = re.compile(pattern)
    return lambda value: all(compiled.fullmatch(item) for item in _items_of(value))


_are_replicas = _items_match(r"([0-9]+:[0-9]+)?")
_HOST_PORT = r"\[?[0-9a-zA-Z\-%._:]+\]?:[0-9]+"

RULES = {
    "": Rule(lambda _: True, ""),
    "not empty": Rule(lambda value: value != "", "text that is not empty"),
    "distinct": Rule(_has_no_empty_item, "a list without empty elements", unique=True),
    "distinct, some": Rule(
        lambda value: bool(value) and _has_no_empty_item(value),
        "a list of one or more, without empty elements",
        unique=True,
    ),
    "1..9 or -1": Rule(lambda value: value in (-1, *range(1, 10)), "a whole number from 1 to 9, or -1"),
    "replicas": Rule(lambda value: value == ("*",) or _are_replicas(value), "a list of partition:broker, or *"),
    "voters": Rule(_items_match(rf"[0-9]+@{_HOST_PORT}"), "a list of id@host:port"),
    "servers": Rule(_items_match(_HOST_PORT), "a list of host:port"),
    "reset": Rule(
        lambda value: bool(_RESET.fullmatch(str(value))),
        "latest, earliest or by_duration: and an ISO 8601 duration",
    ),
}
