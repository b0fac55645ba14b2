"""Reads arguments of `kafkacompat instances`, `configs` and `quotas`: configs as Kafka's tools take them, and periods of time."""

from __future__ import annotations

import re
from collections.abc import Iterable

import click

_MARKS = re.compile(r"[,\[\]]")
_PERIOD = re.compile(r"([0-9]{1,9})(ms|s|m|h|d)?")
_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def parse_configs(texts: Iterable[str]) -> dict[str, str]:
    """Read NAME=VALUE,... as kafka-configs does: brackets group a value with commas. Raises click.BadParameter."""
    configs = {}
    for text in texts:
        for entry in split_outside_brackets(text):
            name, equals, value = entry.partition("=")
            name = name.strip()
            if not equals or not name:
                raise click.BadParameter(f"{entry!r} is not of the form NAME=VALUE, or [VALUE,...] for a list")
            if name in configs:
                raise click.BadParameter(f"{name} is given twice")
            configs[name] = _remove_brackets(value.strip())
    return configs


def split_outside_brackets(text: str) -> list[str]:
    """Split a text at the commas whose next bracket, if there is one, opens; the time is in proportion to the length."""
    entries: list[str] = []
    end, is_inside = len(text), False
    for mark in reversed(list(_MARKS.finditer(text))):
        if mark[0] != ",":
            is_inside = mark[0] == "]"
        elif not is_inside:
            entries.append(text[mark.end() : end])
            end = mark.start()
    return [text[:end], *reversed(entries)]


def _remove_brackets(value: str) -> str:
    return value[1:-1] if value.startswith("[") and value.endswith("]") else value


def split_names(texts: Iterable[str]) -> list[str]:
    """Read NAME,... given once or many times."""
    return list(dict.fromkeys(name.strip() for text in texts for name in text.split(",") if name.strip()))


class Period(click.ParamType):  # type: ignore[type-arg]  # older releases of click have none
    """A period as a number with a unit: ms, s, m, h or d; milliseconds without one, as in Kafka's properties."""

    name = "period"

    def convert(self, value: object, parameter: click.Parameter | None, context: click.Context | None) -> int:
        """Return milliseconds."""
        if isinstance(value, int):
            return value
        match = _PERIOD.fullmatch(str(value).strip())
        if match is None:
            self.fail(f"{value!r} is no period: it takes a number and ms, s, m, h or d", parameter, context)
        return int(match[1]) * _UNITS_MS[match[2] or "ms"]
