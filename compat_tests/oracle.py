"""Kafka's own classes as judges of ours: a Java process that is asked line by line."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

from compat_tests.java_tools import compile_java, java_command
from kafkacompat.wire.schema import Field, Struct

SOURCE = Path(__file__).resolve().parent / "java" / "Oracle.java"


class OracleError(AssertionError):
    """Kafka's classes raised an exception; the text is its words."""


class Oracle:
    """A running Oracle.java; use it as a context manager."""

    def __enter__(self) -> Oracle:
        command = java_command("Oracle", extra_class_path=[compile_java(SOURCE)])
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()

    def ask(self, question: str, **details: Any) -> Any:
        """Return the answer to one question (Oracle.java lists them); raises OracleError."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"ask": question, **details}).encode() + b"\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise OracleError(answer["error"])
        return answer


def kafka_json(message: Struct, version: int) -> dict[str, object]:
    """Return *message* in the JSON form that Kafka's generated converters read."""
    fields = {name: field for name, field in type(message).FIELDS.items() if version in field.versions}
    return {_camel_case(name): _json_value(getattr(message, name), field, version) for name, field in fields.items()}


def _json_value(value: Any, field: Field, version: int) -> object:
    if value is None:
        return None
    if field.element is not None:
        return [_json_value(item, field.element, version) for item in value]
    if field.struct is not None:
        return kafka_json(value, version)
    if field.kind == "uuid":
        return base64.urlsafe_b64encode(value).decode().rstrip("=")
    return base64.b64encode(value).decode() if field.kind in ("bytes", "records") else value


def _camel_case(name: str) -> str:
    return re.sub("_(.)", lambda match: match[1].upper(), name)
