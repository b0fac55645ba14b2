"""The OpenAPI document of /v1, built from the table of operations, and a page that shows it without any script."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, TypeAlias

from kafkacompat import __version__
from kafkacompat.monitoring.administration.operations import Operation

Operations: TypeAlias = Mapping[str, Mapping[str, Operation]]
"""Operations by path and method."""

ERRORS = {
    400: "The request is not valid",
    401: "Nobody has logged in, or the login is wrong",
    403: "The user may not do this",
    404: "There is nothing of this name",
    409: "The instance is in another state",
    429: "Too many wrong logins",
    503: "The controller does not answer at the moment",
}
_IN_PATH = re.compile(r"\{(\w+)\}")


def build_document(operations: Operations) -> dict[str, Any]:
    """Return the document, as of OpenAPI 3.1."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "kafkacompat", "version": __version__},
        "paths": {
            path: {method.lower(): _describe(path, operation) for method, operation in methods.items()}
            for path, methods in operations.items()
        },
        "components": {
            "schemas": {"Error": {"type": "object", "properties": {"error": {"type": "string"}}}},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "password": {"type": "http", "scheme": "basic"},
            },
        },
        "security": [{"token": []}, {"password": []}],
    }


def _describe(path: str, operation: Operation) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in _IN_PATH.findall(path)
    ]
    parameters += (
        {"name": name, "in": "query", "required": False, "schema": dict(schema)}
        for name, schema in operation.parameters.items()
    )
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    described: dict[str, Any] = {
        "summary": operation.summary,
        "parameters": parameters,
        "responses": {
            str(operation.success): {"description": "Done", "content": {"application/json": {}}},
            **{str(status): {"description": text, "content": error} for status, text in ERRORS.items()},
        },
    }
    if operation.fields is not None:
        schema = {"type": "object", "properties": {name: dict(field) for name, field in operation.fields.items()}}
        described["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    return described


def build_page(operations: Operations) -> bytes:
    """Return the document as an HTML page: a table of operations, and one of errors."""
    return "\n".join(_write_page(operations)).encode()


def _write_page(operations: Operations) -> Iterator[str]:
    yield '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>kafkacompat over HTTP</title>'
    yield "<style>body{font-family:sans-serif;margin:2em}td,th{text-align:left;padding:.3em 1em;vertical-align:top}"
    yield "tr{border-bottom:1px solid #ccc}table{border-collapse:collapse}</style></head><body>"
    yield f"<h1>kafkacompat over HTTP</h1><p>kafkacompat {escape(__version__)}. Requests and answers are JSON. "
    yield 'The document for tools is <a href="/openapi.json">/openapi.json</a>. '
    yield "Where users can log in, a request needs a bearer token, or the name and password of a SCRAM user.</p>"
    yield "<table><tr><th>method</th><th>path</th><th>what it does</th><th>query and body</th></tr>"
    for path, methods in operations.items():
        for method, operation in methods.items():
            cells = (method, path, operation.summary, _describe_input(operation))
            yield "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
    yield "</table><h2>Errors</h2><table><tr><th>status</th><th>meaning</th></tr>"
    for status, text in ERRORS.items():
        yield f"<tr><td>{status}</td><td>{escape(text)}</td></tr>"
    yield "</table></body></html>"


def _describe_input(operation: Operation) -> str:
    texts = [f"?{name}: {schema['description']}" for name, schema in operation.parameters.items()]
    texts += (f"{json.dumps(name)}: {schema['description']}" for name, schema in (operation.fields or {}).items())
    return "; ".join(texts)
