"""Kafka's own classes as judges of ours: a Java process that is asked line by line."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from compat_tests.java_tools import POM, compile_java, java_command
from kafkacompat.wire.schema import Field, Struct

JAVA = Path(__file__).resolve().parent / "java"


class OracleError(AssertionError):
    """Kafka's classes raised an exception; the text is its words."""


@dataclass(frozen=True)
class Release:
    """A release of Kafka, and the programs that ask its classes (the first has the main method)."""

    name: str
    pom: Path
    programs: tuple[str, ...]


KAFKA_4 = Release("4.3.1", POM, ("BatchOracle", "Oracle"))
KAFKA_3 = Release("3.9.1", JAVA / "kafka_3_9" / "pom.xml", ("Oracle",))
"""The last one with the protocol versions that 4.0 removed; it judges messages, not batches."""


class Oracle:
    """A running oracle of one release; use it as a context manager."""

    def __init__(self, release: Release = KAFKA_4) -> None:
        self.release = release

    def __enter__(self) -> Oracle:
        programs, pom = self.release.programs, self.release.pom
        classes = compile_java(*(JAVA / f"{name}.java" for name in programs), pom=pom)
        command = java_command(programs[0], extra_class_path=[classes], pom=pom)
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()

    def ask(self, question: str, **details: Any) -> Any:
        """Return the answer to one question (Oracle.java and BatchOracle.java list them); raises OracleError."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"ask": question, **details}).encode() + b"\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise OracleError(answer["error"])
        return answer


RENAMED = {
    "VoteRequest": {
        "replicaEpoch": "candidateEpoch",
        "replicaId": "candidateId",
        "replicaDirectoryId": "candidateDirectoryId",
    },
    "ListClientMetricsResourcesResponse": {"configResources": "clientMetricsResources", "resourceName": "name"},
}
"""What fields were called in 3.9.1, by message; our declarations have the names of 4.3.1."""


def kafka_json(message: Struct, version: int, names: Mapping[str, str] | None = None) -> dict[str, object]:
    """Return *message* in the JSON form that Kafka's generated converters read, with some fields renamed."""
    names = names or {}
    out = {}
    for name, field in type(message).FIELDS.items():
        if version in field.versions:
            title = _camel_case(name)
            out[names.get(title, title)] = _json_value(getattr(message, name), field, version, names)
    return out


def _json_value(value: Any, field: Field, version: int, names: Mapping[str, str]) -> object:
    if value is None:
        return None
    if field.element is not None:
        return [_json_value(item, field.element, version, names) for item in value]
    if field.struct is not None:
        return kafka_json(value, version, names)
    if field.kind == "uuid":
        return base64.urlsafe_b64encode(value).decode().rstrip("=")
    return base64.b64encode(value).decode() if field.kind in ("bytes", "records") else value


def _camel_case(name: str) -> str:
    return re.sub("_(.)", lambda match: match[1].upper(), name)
