"""Turns the options of `kafkacompat produce` into the input to read and the way to send it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kafkacompat.cli.remote.records.failures import OptionError
from kafkacompat.cli.remote.records.input_records import Headers, NewRecord, explain_header_name
from kafkacompat.cli.remote.records.produce_run import STANDARD_INPUT, Delivery, Input, produce
from kafkacompat.cli.remote.running import run_guarded

if TYPE_CHECKING:
    from kafkacompat.cli.remote.options import Target


def run(
    target: Target,
    topic: str,
    *,
    paths: Sequence[Path],
    is_json: bool,
    is_whole: bool,
    key_separator: str | None,
    null_marker: str | None,
    key: str | None,
    headers: Sequence[tuple[str, str]],
    partition: int | None,
    compression: str,
    acks: str,
    properties: Mapping[str, str],
) -> int:
    """Check the options, and produce; returns the exit code."""
    shared: Headers = [(name, encode_argument(value)) for name, value in headers]
    constant = NewRecord(
        None, None if key is None else encode_argument(key), shared or None, -1 if partition is None else partition
    )
    source = Input(paths or (STANDARD_INPUT,), is_json, is_whole, key_separator, null_marker, constant)

    def work() -> int:
        _check_combinations(source)
        _check_header_names(shared)
        return produce(target, topic, source, Delivery(compression, acks), properties)

    return run_guarded(work)


def encode_argument(text: str) -> bytes:
    """Return the bytes of an argument as the shell has passed them: they may be no UTF-8."""
    return text.encode("utf-8", "surrogateescape")


def _check_header_names(headers: Headers) -> None:
    for name, _ in headers:
        if reason := explain_header_name(name):
            raise OptionError(f"--header {name!r} is not valid: the name {reason}")


def _check_combinations(source: Input) -> None:
    if source.key_separator == "":
        raise OptionError("--key-separator is empty: give the text between key and value")
    if source.is_json and (source.is_whole or source.key_separator is not None or source.null_marker is not None):
        raise OptionError("--json reads all fields from the line: leave out --whole, --key-separator and --null-marker")
    if source.is_whole and (source.key_separator is not None or source.null_marker is not None):
        raise OptionError("--whole reads no lines: leave out --key-separator and --null-marker")
