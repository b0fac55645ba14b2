"""Rules from their fields, which are the same in Python, in YAML and over HTTP.

Each rule is checked against the declarations of the protocol: one that could never match, or that has no place in a response, is
rejected at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from kafkacompat.config.suggestions import did_you_mean
from kafkacompat.faults.rules import FaultError, FaultRule
from kafkacompat.handlers import HANDLERS, INTER_BROKER_HANDLERS, TELEMETRY_HANDLERS
from kafkacompat.metadata.topic_names import is_legal_name
from kafkacompat.wire.apis import find_api, find_api_name
from kafkacompat.wire.entities import TOPIC
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.headers import FETCH_KEY
from kafkacompat.wire.schema import MAX_VERSION, Field, Struct, Versions

MAX_MS = 24 * 3600 * 1000
"""The longest delay, pause and throttle time."""
MAX_INT32 = (1 << 31) - 1
ONCE = ("pause_ms", "move_leader")
"""Actions that apply once unless the rule says how often."""
FETCHED_RECORDS = ("corrupt_crc", "truncate_batch")
SASL = ("SaslHandshake", "SaslAuthenticate")


class _Kind(NamedTuple):
    """The kind of a field: its value must pass, else the sentence says what the field takes."""

    accepts: Callable[[Any], bool]
    takes: str


def _is_number(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _number(least: int, most: int = MAX_INT32) -> _Kind:
    return _Kind(lambda value: _is_number(value, least, most), f"a number from {least} to {most}")


_TEXT = _Kind(lambda value: isinstance(value, str), "a text")
_NAME = _Kind(lambda value: isinstance(value, str) and bool(value), "a text that is not empty")
_TRUE = _Kind(lambda value: value is True, "true, or is left out")
_FLAG = _Kind(lambda value: isinstance(value, bool), "true or false")
_NAMES = _Kind(
    lambda value: (
        isinstance(value, str)
        or (isinstance(value, list | tuple) and bool(value) and all(isinstance(name, str) for name in value))
    ),
    "the name of an API or a list of names",
)
_SHARE = _Kind(
    lambda value: isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1,
    "a number above 0 and up to 1",
)
_BROKER = _Kind(lambda value: value is True or _is_number(value, 0, MAX_INT32), "true or the id of a broker")

ACTIONS: dict[str, _Kind] = {
    "error": _NAME,
    "drop": _TRUE,
    "disconnect": _TRUE,
    "cut_after_bytes": _number(0),
    "corrupt_crc": _TRUE,
    "truncate_batch": _TRUE,
    "duplicate": _TRUE,
    "throttle_ms": _number(1, MAX_MS),
    "pause_ms": _number(1, MAX_MS),
    "move_leader": _BROKER,
}
"""A rule has one of these; a rule that has only ``delay_ms`` is a delay."""

FIELDS: dict[str, _Kind] = {
    "api": _NAMES,
    "versions": _NAME,
    "client_id": _TEXT,
    "topic": _NAME,
    "partition": _number(0),
    "listener": _NAME,
    "principal": _NAME,
    "after": _number(0),
    "every": _number(1),
    "times": _number(1),
    "share": _SHARE,
    "seed": _Kind(lambda value: _is_number(value, -(1 << 63), 1 << 63), "a whole number"),
    "carry_out": _FLAG,
    "delay_ms": _number(1, MAX_MS),
    **ACTIONS,
}
"""Every field of a rule, with its kind."""


def parse_rule(fields: Mapping[str, Any]) -> FaultRule:
    """Return the rule that *fields* describe; fields that are None are left out. Raises FaultError, one sentence."""
    given = {name: value for name, value in fields.items() if value is not None}
    for name, value in given.items():
        if name not in FIELDS:
            raise FaultError(
                f"{name!r} is no field of a rule{did_you_mean(str(name), FIELDS)}: use {', '.join(FIELDS)}"
            )
        if not FIELDS[name].accepts(value):
            raise FaultError(f"{name}={value!r}: it takes {FIELDS[name].takes}")
    action = _find_action(given)
    apis = _find_apis(given, action)
    versions = _find_versions(given, apis)
    _check_topic(given, apis)
    _check_principal(given)
    _check_delay(given, action)
    _check_place(action, apis, versions)
    rule = FaultRule(
        action=action,
        apis=apis,
        versions=versions,
        error=_find_error(given),
        amount=_find_amount(given, action),
        carry_out=_find_carry_out(given, action),
        times=given.get("times", 1 if action in ONCE else None),
        given=given,
        **{name: given[name] for name in _SAME_FIELDS if name in given},
    )
    if action == "move_leader" and (rule.topic is None or rule.partition is None or set(rule.topic) & set("*?")):
        raise FaultError("move_leader: name the partition with topic and partition")
    return rule


_SAME_FIELDS = (
    *("client_id", "topic", "partition", "listener", "principal", "after", "every", "share", "seed", "delay_ms"),
)


def _find_action(given: Mapping[str, Any]) -> str:
    actions = [name for name in ACTIONS if name in given]
    if len(actions) > 1:
        raise FaultError(f"a rule has one action, and this one has {' and '.join(actions)}: write two rules")
    if actions:
        return actions[0]
    if "delay_ms" not in given:
        raise FaultError(f"the rule does nothing: give it delay_ms or one of {', '.join(ACTIONS)}")
    return "delay"


@cache
def list_apis() -> Mapping[str, tuple[int, Versions]]:
    """Return the key and the versions of each API that a broker may serve, by Kafka's name."""
    tables = {**HANDLERS, **INTER_BROKER_HANDLERS, **TELEMETRY_HANDLERS}
    return {name_api(key): (key, handler.versions) for key, handler in tables.items()}


@cache
def name_api(key: int) -> str:
    """Return Kafka's name of an API, such as ListOffsets."""
    return find_api_name(key).title().replace("_", "")


def _find_apis(given: Mapping[str, Any], action: str) -> tuple[str, ...]:
    names = given.get("api", ("Fetch",) if action in FETCHED_RECORDS else ())
    apis = (names,) if isinstance(names, str) else tuple(names)
    for name in apis:
        if name not in list_apis():
            raise FaultError(f"api={name}: no broker serves an API of this name{did_you_mean(name, list_apis())}")
        if name in SASL:
            raise FaultError(f"api={name}: no rule sees the requests of an authentication")
    return apis


def _find_versions(given: Mapping[str, Any], apis: tuple[str, ...]) -> Versions | None:
    text = given.get("versions")
    if text is None:
        return None
    try:
        versions = Versions.parse(text)
    except ValueError:
        raise FaultError(f"versions={text}: write 3, 0-4 or 3+") from None
    if versions.first > versions.last or versions.first < 0:
        raise FaultError(f"versions={text}: the range has no version")
    served = [list_apis()[api][1] for api in apis] or [handler for _, handler in list_apis().values()]
    if not any(versions.first <= api.last and api.first <= versions.last for api in served):
        theirs = f"{served[0].first}-{served[0].last}"
        raise FaultError(f"versions={text}: it can never match, because {' and '.join(apis) or 'no API'} has {theirs}")
    return versions


def _check_topic(given: Mapping[str, Any], apis: tuple[str, ...]) -> None:
    topic = given.get("topic")
    if topic is not None and not is_legal_name(topic.replace("*", "a").replace("?", "a")):
        raise FaultError(f"topic={topic}: it can never match, because no topic may have this name")
    for name in ("topic", "partition"):
        without = [api for api in apis if not _names_topics(api)] if name in given else []
        if without:
            raise FaultError(
                f"{name}={given[name]}: it can never match, because requests of {without[0]} name no topics"
            )


def _check_principal(given: Mapping[str, Any]) -> None:
    principal = given.get("principal", "*")
    if ":" not in principal and not set(principal) & set("*?"):
        raise FaultError(f"principal={principal}: it can never match: write User:{principal}")


def _check_delay(given: Mapping[str, Any], action: str) -> None:
    if "delay_ms" in given and (action in ONCE or (action == "drop" and not given.get("carry_out", True))):
        raise FaultError(f"delay_ms: it has no effect beside {action}: leave it out")


@cache
def _names_topics(api: str) -> bool:
    return has_field(find_api(list_apis()[api][0]).request, lambda name, field: field.entity == TOPIC)


_EVERY_VERSION = Versions(0, MAX_VERSION)


def has_field(message: type[Struct], fits: Callable[[str, Field], bool], within: Versions = _EVERY_VERSION) -> bool:
    """Return whether a message has a field, at any depth, in one of some versions."""
    for name, field in message.FIELDS.items():
        if field.versions.first > within.last or field.versions.last < within.first:
            continue
        inner = field.element or field
        if fits(name, inner) or (inner.struct is not None and has_field(inner.struct, fits, within)):
            return True
    return False


def _check_place(action: str, apis: tuple[str, ...], versions: Versions | None) -> None:
    """Raise FaultError for a fault that responses have no place for."""
    if action in FETCHED_RECORDS:
        others = [api for api in apis if list_apis()[api][0] != FETCH_KEY]
        if others:
            raise FaultError(
                f"{action}: it can never apply, because responses of {others[0]} have no records: use Fetch"
            )
    if action != "throttle_ms":
        return
    for api in apis:
        key, served = list_apis()[api]
        if not has_field(find_api(key).response, lambda name, _: name == "throttle_time_ms", versions or served):
            raise FaultError(f"throttle_ms: it can never apply, because responses of {api} have no throttle time")


def _find_error(given: Mapping[str, Any]) -> ErrorCode | None:
    name = given.get("error")
    if name is None:
        return None
    names = [code.name for code in ErrorCode if code != ErrorCode.NONE]
    if name not in names:
        raise FaultError(f"error={name}: the protocol has no error of this name{did_you_mean(name, names)}")
    return ErrorCode[name]


def _find_amount(given: Mapping[str, Any], action: str) -> int:
    amount = given.get(action, 0)
    return (-1 if amount is True else int(amount)) if action != "error" else 0


def _find_carry_out(given: Mapping[str, Any], action: str) -> bool:
    if "carry_out" in given and action not in ("error", "drop", "disconnect"):
        raise FaultError(f"carry_out: it is for error, drop and disconnect, and a request with {action} is carried out")
    return bool(given.get("carry_out", action not in ("error", "disconnect")))
