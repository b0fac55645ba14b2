"""Turns the options of `kafkacompat consume` into the records to read and the form to write them in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kafkacompat.cli.remote.records.consume_run import REGISTRY, TEXT, Presentation, Selection, consume
from kafkacompat.cli.remote.records.failures import OptionError
from kafkacompat.cli.remote.records.line_format import FIELDS
from kafkacompat.cli.remote.records.positions import Start, StartKind
from kafkacompat.cli.remote.running import run_guarded

if TYPE_CHECKING:
    from kafkacompat.cli.remote.options import Target

_MAX_OFFSET = 2**63 - 1


def run(
    target: Target,
    topic: str,
    *,
    from_beginning: bool,
    offset: str | None,
    timestamp: str | None,
    partitions: tuple[int, ...],
    group: str | None,
    most: int | None,
    follows: bool,
    isolation: str,
    fields: str | None,
    separator: str | None,
    is_raw: bool,
    path: Path | None,
    registry: str | None,
    registry_config: Path | None,
    value_decoder: str | None,
    key_decoder: str,
    properties: Mapping[str, str],
) -> int:
    """Check the options, and consume; returns the exit code."""

    def work() -> int:
        start = parse_start(from_beginning=from_beginning, offset=offset, timestamp=timestamp)
        _check_combinations(
            target, start, partitions=partitions, group=group, is_raw=is_raw, fields=fields, separator=separator
        )
        selection = Selection(topic, start, partitions, group, most, follows, isolation)
        presentation = Presentation(
            parse_fields(fields),
            "\t" if separator is None else separator,
            is_raw,
            key_decoder,
            value_decoder or (REGISTRY if registry is not None else TEXT),
            registry,
            registry_config,
            path,
        )
        return consume(target, selection, presentation, properties)

    return run_guarded(work)


def parse_start(*, from_beginning: bool, offset: str | None, timestamp: str | None) -> Start | None:
    """Return where to start, None if no option says so; raises OptionError."""
    if sum((from_beginning, offset is not None, timestamp is not None)) > 1:
        raise OptionError("--from-beginning, --offset and --timestamp each say where to start: give one of them")
    if from_beginning:
        return Start(StartKind.EARLIEST)
    if offset is not None:
        return _parse_offset(offset)
    return None if timestamp is None else Start(StartKind.TIMESTAMP, parse_time_ms(timestamp))


def _parse_offset(text: str) -> Start:
    words = {"earliest": StartKind.EARLIEST, "latest": StartKind.LATEST}
    if text in words:
        return Start(words[text])
    try:
        number = int(text)
    except ValueError:
        number = _MAX_OFFSET + 1
    if abs(number) > _MAX_OFFSET:
        raise OptionError(
            f"--offset {text!r} is no offset: it takes a number, earliest, latest, or -N for the last N records"
        )
    return Start(StartKind.LAST, -number) if text.startswith("-") else Start(StartKind.OFFSET, number)


def parse_time_ms(text: str) -> int:
    """Return milliseconds since 1970; raises OptionError."""
    if text.isdecimal() and len(text) < 19:
        return int(text)
    try:
        # Python 3.10 does not read the Z of UTC.
        moment = datetime.fromisoformat(f"{text[:-1]}+00:00" if text.endswith(("Z", "z")) else text)
        return max(0, int(moment.timestamp() * 1000))
    except (ValueError, OverflowError, OSError):
        advice = "it takes milliseconds since 1970, or ISO 8601 as 2026-11-27T08:00:00+01:00"
        raise OptionError(f"--timestamp {text!r} is no time: {advice}") from None


def parse_fields(text: str | None) -> tuple[str, ...]:
    """Return the fields of a line; raises OptionError."""
    if text is None:
        return ("value",)
    fields = tuple(name.strip() for name in text.split(","))
    for name in fields:
        if name not in FIELDS:
            raise OptionError(f"--print {name!r} is no field: choose from {', '.join(FIELDS)}")
    return fields


def _check_combinations(
    target: Target,
    start: Start | None,
    *,
    partitions: Sequence[int],
    group: str | None,
    is_raw: bool,
    fields: str | None,
    separator: str | None,
) -> None:
    if group is not None and partitions:
        raise OptionError("--group and --partition exclude each other: the group assigns the partitions")
    if group is not None and start is not None and start.kind is not StartKind.EARLIEST:
        raise OptionError(
            "a group starts at its own offsets: change them by `kafkacompat groups reset`, or leave out --group"
        )
    if is_raw and (target.as_json or fields is not None):
        raise OptionError("--raw writes nothing but the values: leave out --json and --print")
    if target.as_json and (fields is not None or separator is not None):
        raise OptionError("--json writes all fields: leave out --print and --separator")
    if separator is not None and fields is None:
        raise OptionError("--separator stands between the fields of --print: give that too")
