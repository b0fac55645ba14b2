"""A visitor of the web page without a browser or a socket: sends requests to a whole broker on one clock, and keeps its cookie."""

from __future__ import annotations

import hashlib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode

from kafkacompat.metadata.scram_changes import ScramUpsertion
from kafkacompat.security.scram import ScramMechanism
from tests.kafkacompat.monitoring.web import Answer, connect, parse_answer
from tests.kafkacompat.monitoring.world import World

TOKEN = "0123456789abcdef0123"
PASSWORD = "open sesame"
STEP_S = 0.01


class PageText(HTMLParser):
    """The elements of a page: their names, their attributes, and the text."""

    def __init__(self, body: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(body)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def links(self) -> list[str]:
        """List the targets of links."""
        return [attributes.get("href") or "" for tag, attributes in self.elements if tag == "a"]


class Visitor:
    """One visitor of a broker with the page; keyword arguments are properties with underscores for dots."""

    def __init__(self, folder: Path, *, host: str = "127.0.0.1:9464", **properties: str) -> None:
        (folder / "data").mkdir(exist_ok=True)
        self.world = World(folder / "data", kafkacompat_ui_enable="true", **properties)
        self.world.run(self.world.broker.start())
        self.host = host
        self.cookie = ""

    def send(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        """Send a request and return the answer; a cookie that it sets is kept."""
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self.host}", f"Content-Length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        if self.cookie:
            lines.append(f"Cookie: kafkacompat_ui_1={self.cookie}")
        protocol, transport = connect(self.world.clock.site)
        protocol.dataReceived("\r\n".join([*lines, "", ""]).encode() + body)
        for _ in range(1000):
            if not transport.connected:
                break
            self.world.clock.advance(STEP_S)
        answer = parse_answer(transport.value())
        if "set-cookie" in answer.headers:
            self.cookie = answer.headers["set-cookie"].partition(";")[0].partition("=")[2]
        return answer

    def get(self, path: str) -> Answer:
        return self.send("GET", path)

    def read(self, path: str) -> PageText:
        """Return a page that must be there."""
        answer = self.get(path)
        assert answer.status == 200, (path, answer.status, answer.body)
        return PageText(answer.body)

    def post(self, path: str, fields: dict[str, str], **headers: str) -> Answer:
        headers = {"Content_Type": "application/x-www-form-urlencoded", **headers}
        return self.send("POST", path, urlencode(fields).encode(), **headers)

    def log_in(self, name: str, secret: str, **fields: str) -> Answer:
        return self.post("/ui/login", {"name": name, "secret": secret, **fields})

    def add_user(self, user: str) -> None:
        """Add a SCRAM user with `PASSWORD`."""
        salted = hashlib.pbkdf2_hmac("sha512", PASSWORD.encode(), b"salt", 4096)
        change = ScramUpsertion(user, ScramMechanism.SHA_512, 4096, b"salt", salted)
        assert self.world.run(self.world.broker.controller.alter_scram_credentials([change])) == {user: None}

    def produce(self, topic: str, *values: bytes) -> None:
        """Create a topic with these values, each in a batch of its own with the key "k"."""
        topic_id = self.world.make_topic(topic)
        for value in values:
            self.world.produce(topic, topic_id, value)
