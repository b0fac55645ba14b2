"""Files of a log as Kafka's DumpLogSegments and as our `log dump` show them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from compat_tests.java_tools import run_java
from kafkacompat.cli.decoders import offsets_decoder
from kafkacompat.storage.files.operating_system import OsFiles
from kafkacompat.storage.inspection.dump import dump_file
from kafkacompat.storage.inspection.rows import PROBLEM, Decoder, DumpOptions, DumpRow, decode_plain_text

DUMP = "org.apache.kafka.tools.DumpLogSegments"

# Values that Kafka prints in Java's words.
_WORDS = {"OptionalLong.empty": "None", "NO_TIMESTAMP_TYPE": "NoTimestampType"}
_TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime", "NoTimestampType")
_DECODERS: dict[str, Decoder] = {"--print-data-log": decode_plain_text, "--offsets-decoder": offsets_decoder}


def kafkas_dump(files: Iterable[Path], *options: str) -> tuple[str, str]:
    """Return the standard output and the standard error of DumpLogSegments."""
    done = run_java(DUMP, ["--files", ",".join(map(str, files)), *options])
    return done.stdout, done.stderr


def list_complaints(errors: str) -> list[str]:
    """Return the complaints on standard error, except that about a segment that does not begin at 0: Kafka's own get it too."""
    lines = [line for line in errors.splitlines() if line.strip()]
    return [
        line
        for line in lines
        if not line.startswith("Non-consecutive offsets in") and not line.strip().startswith("-1 is followed by")
    ]


def kafkas_batches(output: str) -> list[dict[str, str]]:
    """Return the batches of its output, by field."""
    return [_split_fields(line) for line in output.splitlines() if line.startswith(("baseOffset: ", "offset: "))]


def kafkas_records(output: str) -> list[dict[str, str]]:
    """Return the records of its output, by field; key and payload are the last ones."""
    return [_split_fields(line.removeprefix("| ")) for line in output.splitlines() if line.startswith("| ")]


def _split_fields(line: str) -> dict[str, str]:
    contents: dict[str, str] = {}
    for name in ("payload", "key"):
        line, separator, value = line.partition(f" {name}: ")
        if separator:
            contents[name] = value
    fields = dict(re.findall(r"(\w+): (\[.*?\]|\S+)", line))
    for name in _TIMESTAMP_TYPES:
        if name in fields:
            fields["timestampType"], fields["timestamp"] = name, fields.pop(name)
    value = fields.get("deleteHorizonMs", "")
    if value:
        fields["deleteHorizonMs"] = _WORDS.get(value, value.removeprefix("OptionalLong[").removesuffix("]"))
    return fields | contents


def our_rows(path: Path, *options: str) -> list[DumpRow]:
    """The rows of our dump, with Kafka's options."""
    decoder = next((_DECODERS[option] for option in options if option in _DECODERS), None)
    rows = dump_file(OsFiles(read_only=True), str(path), DumpOptions(deep_iteration=bool(options), decoder=decoder))
    assert rows is not None
    listed_rows = list(rows)
    assert [row for row in listed_rows if row.kind == PROBLEM] == []
    return listed_rows


def our_fields(rows: Sequence[DumpRow], *kinds: str) -> list[dict[str, str]]:
    """Rows of some kinds in Kafka's words; null keys and values are left out, as there."""
    return [
        {
            name: _format_value(value)
            for name, value in row.fields.items()
            if not (value is None and name in ("key", "payload"))
        }
        for row in rows
        if row.kind in kinds
    ]


def _format_value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"[{','.join(value)}]" if isinstance(value, list) else str(value)
