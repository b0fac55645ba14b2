"""A schema registry (Karapace, Confluent's) over HTTP: schemas by id and by subject, with those that they refer to.

The driver asks once and sends the schemas along. An executor asks for ids that it does not know, and keeps the schemas
as long as its process lives.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from spark_integration.errors import PipelineError

TIMEOUT_S = 10.0
FIRST_PAUSE_S = 0.5
PASSING = {HTTPStatus.TOO_MANY_REQUESTS} | {
    status for status in HTTPStatus if status >= HTTPStatus.INTERNAL_SERVER_ERROR
}
# Registries answer 404 with these codes for an unknown subject, version or schema. A proxy's 404 has none of them.
UNKNOWN = (40401, 40402, 40403)
REFUSING = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
# In the words of Confluent's Python client.
PROPERTIES = (
    "basic.auth.user.info",
    "bearer.auth.token",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
)


class RegistryError(PipelineError):
    """The registry does not answer, or not as expected; this says nothing about the records."""


class UnknownSchemaError(PipelineError):
    """The registry has no such schema."""


@dataclass(frozen=True)
class Schema:
    """A schema's text, with the names and texts of the schemas that it refers to.

    *references* are ordered so that each follows those that it needs. *kind* is AVRO, PROTOBUF or JSON, in the
    registries' words.
    """

    kind: str
    text: str
    references: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class RegistryOptions:
    """The address of a registry; *properties* are some of PROPERTIES. Files that they name must be on every executor."""

    url: str
    properties: tuple[tuple[str, str], ...] = ()


def make_registry_options(url: str, properties: Mapping[str, str]) -> RegistryOptions:
    """Make the options from the user's words; raises PipelineError."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise PipelineError(f"{url!r} is no address of a schema registry: give one like http://127.0.0.1:8081")
    if parts.username is not None:
        raise PipelineError(
            "the registry's address holds a password: "
            "put basic.auth.user.info=USER:PASSWORD into the file of --schema-registry-config"
        )
    if unknown := [name for name in properties if name not in PROPERTIES]:
        raise PipelineError(f"{unknown[0]!r} is no property of a schema registry: choose from {', '.join(PROPERTIES)}")
    return RegistryOptions(url.rstrip("/"), tuple(properties.items()))


class SchemaRegistry:
    """Asks a registry, *tries* times with growing pauses if it does not answer."""

    _kept: dict[tuple[str, str], Any] = {}

    def __init__(self, options: RegistryOptions, tries: int = 5) -> None:
        self.url = options.url
        self._tries = tries
        properties = dict(options.properties)
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json", **_authorization_header(properties)}
        self._context = _make_tls_context(properties) if options.url.startswith("https:") else None

    def by_id(self, schema_id: int) -> Schema:
        """Return a schema; raises UnknownSchemaError, RegistryError."""
        return self._parse_schema(self._fetch_immutable(f"/schemas/ids/{schema_id}"))

    def latest(self, subject: str) -> tuple[int, Schema]:
        """Return the id and the schema of a subject's newest version; raises UnknownSchemaError, RegistryError."""
        answer = self._ask(f"/subjects/{_quote_subject(subject)}/versions/latest")
        return int(answer["id"]), self._parse_schema(answer)

    def versions(self, subject: str) -> dict[int, Schema]:
        """Return all versions of a subject by their ids; raises UnknownSchemaError, RegistryError."""
        numbers = self._ask(f"/subjects/{_quote_subject(subject)}/versions")
        answers = [self._version(subject, number) for number in numbers]
        return {int(answer["id"]): self._parse_schema(answer) for answer in answers}

    def _version(self, subject: str, number: int) -> Any:
        return self._fetch_immutable(f"/subjects/{_quote_subject(subject)}/versions/{number}")

    def _parse_schema(self, answer: Any) -> Schema:
        references: dict[str, str] = {}
        self._follow(answer, references)
        return Schema(answer.get("schemaType", "AVRO"), answer["schema"], tuple(references.items()))

    def _follow(self, answer: Any, references: dict[str, str]) -> None:
        for reference in answer.get("references") or ():
            if reference["name"] not in references:
                referred = self._version(reference["subject"], reference["version"])
                self._follow(referred, references)
                references[reference["name"]] = referred["schema"]

    def _fetch_immutable(self, path: str) -> Any:
        key = self.url, path
        if key not in self._kept:
            self._kept[key] = self._ask(path)
        return self._kept[key]

    def _ask(self, path: str) -> Any:
        for number in range(self._tries):
            if number:
                threading.Event().wait(FIRST_PAUSE_S * 2 ** (number - 1))
            try:
                return self._answer(path)
            except urllib.error.HTTPError as problem:
                failure: Exception = problem
                self._judge(problem, path)
            except (OSError, ValueError, http.client.HTTPException) as problem:
                failure = problem
        raise RegistryError(
            f"the schema registry {self.url} does not answer ({_describe_failure(failure)}): "
            "see that it runs, then run this again"
        )

    def _answer(self, path: str) -> Any:
        request = urllib.request.Request(self.url + path, headers=self._headers)
        with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=self._context) as answer:
            return json.loads(answer.read())

    def _judge(self, problem: urllib.error.HTTPError, path: str) -> None:
        if problem.code == HTTPStatus.NOT_FOUND and _error_code(problem) in UNKNOWN:
            raise UnknownSchemaError(f"the schema registry {self.url} has no {path}: register it, or name another")
        if problem.code in PASSING or problem.code == HTTPStatus.NOT_FOUND:
            return
        reason = "it refuses the credentials" if problem.code in REFUSING else f"HTTP {problem.code}"
        raise RegistryError(
            f"the schema registry {self.url} does not answer {path} ({reason}): check --schema-registry-config"
        )


def _error_code(problem: urllib.error.HTTPError) -> Any:
    try:
        answer = json.loads(problem.read())
    except (OSError, ValueError, http.client.HTTPException):
        return None
    return answer.get("error_code") if isinstance(answer, dict) else None


def _authorization_header(properties: Mapping[str, str]) -> dict[str, str]:
    if user := properties.get("basic.auth.user.info"):
        return {"Authorization": f"Basic {base64.b64encode(user.encode()).decode()}"}
    if token := properties.get("bearer.auth.token"):
        return {"Authorization": f"Bearer {token}"}
    return {}


def _make_tls_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=properties.get("ssl.ca.location"))
        if certificate := properties.get("ssl.certificate.location"):
            context.load_cert_chain(certificate, properties.get("ssl.key.location"), properties.get("ssl.key.password"))
    except OSError as problem:
        raise RegistryError(
            f"the certificates for the schema registry cannot be read ({problem}): "
            "check ssl.* in the file of --schema-registry-config"
        ) from problem
    return context


def _quote_subject(subject: str) -> str:
    return urllib.parse.quote(subject, safe="")


def _describe_failure(failure: Exception) -> str:
    if isinstance(failure, urllib.error.HTTPError):
        return f"HTTP {failure.code}"
    reason = getattr(failure, "reason", None)
    return str(reason or failure or type(failure).__name__)
