"""Properties of Kafka's clients, from files that Kafka's own tools read too. Imports no pyspark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from spark_integration.errors import PipelineError

KAFKA = "kafka."
"""Prefix of the options that Spark passes on to Kafka's clients."""
_NAME_AND_VALUE = re.compile(r"((?:\\.|[^\\\s=:])*)[ \t\f]*[=:]?[ \t\f]*(.*)")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
_BLANKS = " \t\f"
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_kafka_options(path: Path | str) -> dict[str, str]:
    """Return the properties in the file as options of Spark's Kafka source and sink, which begin with ``kafka.``.

    Raises PipelineError as `read_properties` does.
    """
    return {f"{KAFKA}{name}": value for name, value in read_properties(Path(path)).items()}


def read_properties(path: Path) -> dict[str, str]:
    """Read a file of properties in the form of java.util.Properties, in UTF-8; raises PipelineError if it is none."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as problem:
        raise PipelineError(f"{path} is no file of properties: give one with lines NAME=VALUE") from problem
    matches = [_NAME_AND_VALUE.fullmatch(line) for line in _join_lines(text)]
    return {_unescape(match[1]): _unescape(match[2]) for match in matches if match}


def _join_lines(text: str) -> Iterator[str]:
    """Yield the lines without comments; a line that ends with a backslash continues in the next one."""
    lines = (line.lstrip(_BLANKS).rstrip("\r") for line in text.split("\n"))
    for joined in lines:
        if not joined or joined.startswith(("#", "!")):
            continue
        while (len(joined) - len(joined.rstrip("\\"))) % 2:
            joined = joined[:-1] + next(lines, "")
        yield joined


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else _ESCAPED.get(match[2], match[2]), text)
