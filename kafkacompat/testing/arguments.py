"""The types of arguments, checked where tests give them: a wrong one is one sentence, not an error of the broker's code."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple

from kafkacompat.testing.acls import Acl
from kafkacompat.testing.errors import BrokerError


class ArgumentCheck(NamedTuple):
    """Whether a value has the type of an argument, and what to give instead of another."""

    accepts: Callable[[Any], bool]
    advice: str


def is_number(value: object) -> bool:
    """Return whether a value is a whole number, also one of numpy; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_iterable(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes)


def _are_texts(value: object) -> bool:
    if not isinstance(value, Iterable) or isinstance(value, bytes):
        return False
    # Reading an iterator would take its items.
    return not isinstance(value, Collection) or all(isinstance(text, str) for text in value)


def _are_passwords(value: object) -> bool:
    return isinstance(value, Mapping) and _are_texts(value) and _are_texts(list(value.values()))


def _are_rules(value: object) -> bool:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return False
    return all(isinstance(rule, Acl) for rule in value)


def _are_instances(value: object) -> bool:
    if not isinstance(value, Mapping):
        return _are_texts(value)
    return _are_texts(value) and all(isinstance(properties, Mapping) for properties in value.values())


_NUMBER = ArgumentCheck(is_number, "give a number")
_NAME = ArgumentCheck(lambda value: isinstance(value, str), "give a name")
_SECONDS = ArgumentCheck(lambda value: is_number(value) or isinstance(value, float), "give seconds")
CHECKS: Mapping[str, ArgumentCheck] = {
    "folder": ArgumentCheck(lambda value: isinstance(value, str | os.PathLike), "give a path"),
    "tls": ArgumentCheck(lambda value: isinstance(value, bool), "give True or False"),
    "users": ArgumentCheck(_are_passwords, 'give passwords by name, {"alice": "secret"}'),
    "acls": ArgumentCheck(_are_rules, "give a list of rules, [Acl(...)]"),
    "instances": ArgumentCheck(
        _are_instances, 'give names, ["shop"], or properties by name, {"shop": {"limit_topics": 5}}'
    ),
    "releases": ArgumentCheck(_are_texts, 'give names, ["2.8", "4.3"]'),
    "brokers": _NUMBER,
    "topic": _NAME,
    "group": _NAME,
    "partitions": _NUMBER,
    "replicas": _NUMBER,
    "partition": _NUMBER,
    "rows": ArgumentCheck(_is_iterable, "give a list of rows"),
    "n": _NUMBER,
    "lag": _NUMBER,
    "within": _SECONDS,
}
OPTIONAL = frozenset({"folder", "users", "acls", "partition", "n"})
"""Arguments that may be None."""


def check_arguments(**arguments: object) -> None:
    """Raise BrokerError, one sentence, for an argument of the wrong type."""
    for name, value in arguments.items():
        if value is None and name in OPTIONAL:
            continue
        check = CHECKS[name]
        if not check.accepts(value):
            raise BrokerError(f"{name}={value!r} has the wrong type, {type(value).__name__}: {check.advice}")
