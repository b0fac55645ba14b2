"""A schema registry in this process, which answers reads of schemas, for tests that need no real one."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from typing_extensions import Self

Reference = dict[str, Any]


class FakeRegistry:
    """Answers on a port of its own; *user* (``name:password``) makes it require one. ``asked`` lists the requests."""

    def __init__(self, user: str | None = None) -> None:
        self.subjects: dict[str, list[dict[str, Any]]] = {}
        self.asked: list[str] = []
        self.fail_for_ids = False
        self._expected = f"Basic {base64.b64encode(user.encode()).decode()}" if user else None
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def register(self, subject: str, text: str, kind: str = "AVRO", references: Sequence[Reference] = ()) -> int:
        """Add a version to a subject; return its id."""
        versions = self.subjects.setdefault(subject, [])
        number = sum(len(known) for known in self.subjects.values()) + 1
        schema = {"subject": subject, "version": len(versions) + 1, "id": number, "schema": text}
        schema |= {"schemaType": kind} if kind != "AVRO" else {}
        versions.append(schema | ({"references": list(references)} if references else {}))
        return number

    def _answer(self, path: str) -> Any:
        match path.strip("/").split("/"):
            case ["schemas", "ids", number]:
                matching = (
                    schema for versions in self.subjects.values() for schema in versions if schema["id"] == int(number)
                )
                return next(matching, None)
            case ["subjects", subject, "versions"]:
                return [schema["version"] for schema in self.subjects.get(unquote(subject), ())] or None
            case ["subjects", subject, "versions", number]:
                versions = self.subjects.get(unquote(subject), [])
                wanted = len(versions) if number == "latest" else int(number)
                return next((schema for schema in versions if schema["version"] == wanted), None)
        return None

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.asked.append(self.path)
                answer = registry._answer(self.path)
                status = HTTPStatus.OK if answer is not None else HTTPStatus.NOT_FOUND
                if registry._expected not in (None, self.headers["Authorization"]):
                    status = HTTPStatus.UNAUTHORIZED
                if registry.fail_for_ids and "/ids/" in self.path:
                    status = HTTPStatus.SERVICE_UNAVAILABLE
                error = {"error_code": (40403 if "/ids/" in self.path else 40401) if answer is None else status * 100}
                body = json.dumps(answer if status == HTTPStatus.OK else error).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler
