"""The client of schema registries: its requests, its cache and its refusals; without Spark."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import StreamRequestHandler, ThreadingTCPServer

import pytest

from compat_tests.spark.schema_registry import FakeRegistry
from spark_integration.errors import PipelineError, explain_failure
from spark_integration.validate import registry
from spark_integration.validate.registry import (
    RegistryError,
    RegistryOptions,
    Schema,
    SchemaRegistry,
    UnknownSchemaError,
    make_registry_options,
)

POINT, LINE = '{"type": "point"}', '{"type": "line"}'


def test_references_come_before_their_users() -> None:
    """References of other subjects, through several steps, each once."""
    with FakeRegistry() as registry:
        registry.register("point", POINT)
        to_point = {"name": "Point", "subject": "point", "version": 1}
        registry.register("a/line", LINE, references=[to_point])
        to_line = {"name": "Line", "subject": "a/line", "version": 1}
        shape = registry.register("shape", "{}", "PROTOBUF", [to_line, to_point])
        schema = SchemaRegistry(RegistryOptions(registry.url)).by_id(shape)
    assert schema == Schema("PROTOBUF", "{}", (("Point", POINT), ("Line", LINE)))


def test_an_id_is_asked_for_once_and_the_newest_version_each_time() -> None:
    with FakeRegistry() as registry:
        first = registry.register("subject", POINT)
        for _ in range(2):
            client = SchemaRegistry(RegistryOptions(registry.url))
            assert client.by_id(first).text == POINT
            assert client.latest("subject") == (first, Schema("AVRO", POINT))
        second = registry.register("subject", LINE)
        assert client.latest("subject") == (second, Schema("AVRO", LINE))
        assert client.versions("subject") == {first: Schema("AVRO", POINT), second: Schema("AVRO", LINE)}
        assert registry.asked.count(f"/schemas/ids/{first}") == 1
        assert registry.asked.count("/subjects/subject/versions/latest") == 3


def test_a_missing_schema_is_unknown() -> None:
    with FakeRegistry() as registry:
        client = SchemaRegistry(RegistryOptions(registry.url))
        with pytest.raises(UnknownSchemaError, match="has no /schemas/ids/5"):
            client.by_id(5)
        with pytest.raises(UnknownSchemaError, match="has no /subjects/none/versions/latest"):
            client.latest("none")


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({}, "refuses the credentials"),
        ({"basic.auth.user.info": "me:wrong"}, "refuses"),
        ({"bearer.auth.token": "x"}, "refuses"),
    ],
)
def test_credentials(properties: dict[str, str], message: str) -> None:
    with FakeRegistry("me:secret") as registry:
        number = registry.register("subject", json.dumps({}))
        with pytest.raises(RegistryError, match=message):
            SchemaRegistry(make_registry_options(registry.url, properties)).by_id(number)
        allowed = make_registry_options(f"{registry.url}/", {"basic.auth.user.info": "me:secret"})
        assert SchemaRegistry(allowed).by_id(number).text == "{}"


def test_a_registry_that_fails_is_no_unknown_schema() -> None:
    with FakeRegistry() as registry:
        number = registry.register("subject", "{}")
        registry.fail_for_ids = True
        with pytest.raises(RegistryError, match="does not answer"):
            SchemaRegistry(RegistryOptions(registry.url), tries=2).by_id(number)
        assert registry.asked.count(f"/schemas/ids/{number}") == 2
        registry.fail_for_ids = False
        assert SchemaRegistry(RegistryOptions(registry.url)).by_id(number).text == "{}"


NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nConnection: close\r\n"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (NOT_FOUND + b"\r\n<html>ingress</html>", "HTTP 404"),
        (NOT_FOUND + b'\r\n{"error_code": 404, "message": "HTTP 404 Not Found"}', "HTTP 404"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{", "IncompleteRead"),
        (b"no status\r\n\r\n", "no status"),
        (b"", "closed connection"),
    ],
)
def test_a_proxys_answer_is_no_unknown_schema(monkeypatch: pytest.MonkeyPatch, answer: bytes, message: str) -> None:
    """A proxy's page or an incomplete response is no unknown schema.

    The client asks again, and finally reports that the registry does not answer.
    """
    monkeypatch.setattr(registry, "FIRST_PAUSE_S", 0)
    with serve_answer(answer) as (url, asked), pytest.raises(RegistryError, match=f"does not answer .*{message}"):
        SchemaRegistry(RegistryOptions(url), tries=2).by_id(1)
    assert len(asked) == 2


@contextmanager
def serve_answer(answer: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """Answer every request with these bytes; yields the address, and the list of requests."""
    asked: list[bytes] = []

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            asked.append(self.rfile.readline())
            while self.rfile.readline().strip():
                pass
            self.wfile.write(answer)

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("url", "properties", "message"),
    [
        ("registry:8081", {}, "is no address of a schema registry"),
        ("ftp://registry", {}, "is no address of a schema registry"),
        ("http://me:secret@registry:8081", {}, "holds a password"),
        ("http://registry", {"ssl.truststore.location": "x"}, "'ssl.truststore.location' is no property"),
    ],
)
def test_options_that_are_refused(url: str, properties: dict[str, str], message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        make_registry_options(url, properties)


def test_certificates_that_are_not_there() -> None:
    with pytest.raises(RegistryError, match="certificates for the schema registry cannot be read"):
        SchemaRegistry(RegistryOptions("https://registry", (("ssl.ca.location", "/nowhere.pem"),)))


def test_an_executors_error_becomes_a_sentence() -> None:
    text = (
        "Job aborted ...\n  File x\nspark_integration.validate.registry.RegistryError: it does not answer\n\n\tat java"
    )
    assert explain_failure(RuntimeError(text)) == "it does not answer"
