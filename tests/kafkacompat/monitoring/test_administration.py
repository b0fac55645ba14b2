"""/v1/instances over HTTP: a whole broker, and users with tokens, passwords and neither."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kafkacompat.config.instances import INSTANCE_PROPERTIES
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.scram_changes import ScramUpsertion
from kafkacompat.monitoring.administration.access import FAILURE_PERIOD_S, MAX_FAILURES
from kafkacompat.monitoring.administration.operations import OPERATIONS
from kafkacompat.monitoring.administration.pages import MAX_BODY_BYTES
from kafkacompat.security.scram import ScramMechanism
from tests.kafkacompat.monitoring.web import connect, parse_answer
from tests.kafkacompat.monitoring.world import World

TOKEN = "0123456789abcdef0123"
PASSWORD = "open sesame"


class Api:
    """Requests to /v1 of a broker."""

    def __init__(self, folder: Path, **properties: str) -> None:
        self.token_file = folder / "tokens"
        self.token_file.write_text(f"# administrators\nalice:{TOKEN}\nshort:abc\n")
        self.world = World(folder / "data", **properties)
        self.world.run(self.world.broker.start())

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        authorization: str | None = f"Bearer {TOKEN}",
        kind: str = "application/json",
    ) -> tuple[int, Any]:
        """Return status and body of the answer."""
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", "Host: here", f"Content-Length: {len(data)}", f"Content-Type: {kind}"]
        if authorization is not None:
            lines.append(f"Authorization: {authorization}")
        protocol, transport = connect(self.world.clock.site)
        protocol.dataReceived("\r\n".join([*lines, "", ""]).encode() + data)
        for _ in range(1000):
            if not transport.connected:
                break
            self.world.clock.advance(0.01)
        answer = parse_answer(transport.value())
        assert answer.headers["content-type"] == "application/json"
        return answer.status, json.loads(answer.body)

    def properties(self, name: str) -> dict[str, str]:
        return dict(self.world.broker.metadata.image.config(ResourceType.INSTANCE, name))


@pytest.fixture
def open_api(tmp_path: Path) -> Callable[..., Api]:
    (tmp_path / "data").mkdir()
    return lambda **properties: Api(tmp_path, **properties)


@pytest.fixture
def api(tmp_path: Path, open_api: Callable[..., Api]) -> Api:
    return open_api(kafkacompat_http_token_file=str(tmp_path / "tokens"))


def test_the_life_of_an_instance(api: Api) -> None:
    wanted = {"properties": {"limit.topics": 3, "whitelist": ["10.0.0.0/8", "fd00::/8"], "description": "a shop"}}
    status, created = api.ask("PUT", "/v1/instances/shop", wanted)
    assert status == 201
    assert created["properties"]["whitelist"] == "10.0.0.0/8,fd00::/8"
    assert "secret" not in created["properties"] and len(api.properties("shop")["secret"]) == 64
    assert api.ask("GET", "/v1/instances/shop") == (200, created)
    assert api.ask("GET", "/v1/instances") == (200, {"instances": [created]})
    status, changed = api.ask("PATCH", "/v1/instances/shop", {"properties": {"limit.topics": None, "limit.groups": 1}})
    assert status == 200 and "limit.topics" not in changed["properties"]
    assert api.properties("shop")["limit.groups"] == "1" and api.properties("shop")["description"] == "a shop"
    cluster_id = api.properties("shop")["cluster.id"]
    status, _ = api.ask("PUT", "/v1/instances/shop", {"properties": {"description": "another", "limit.groups": 1}})
    assert status == 200
    assert set(api.properties("shop")) == {"cluster.id", "secret", "description", "limit.groups"}
    assert api.properties("shop")["cluster.id"] == cluster_id
    status, changed = api.ask("PUT", "/v1/instances/shop/whitelist", {"networks": ["none"]})
    assert (status, changed["properties"]["whitelist"]) == (200, "none")
    api.world.make_topic("shop.orders")
    status, answer = api.ask("GET", "/v1/instances/shop/usage")
    assert (status, answer["name"], answer["limits"]) == (200, "shop", {"limit.groups": 1})
    assert (answer["usage"]["topics"], answer["usage"]["partitions"]) == (1, 1)
    assert answer["usage"]["broker"]["node.id"] == 1 and answer["usage"]["broker"]["led.partitions"] == 1
    status, deleted = api.ask("DELETE", "/v1/instances/shop?grace.ms=60000")
    assert (status, deleted["state"]) == (202, "deleting")
    assert api.ask("POST", "/v1/instances/shop/restore", {})[1]["state"] == "active"
    assert api.ask("POST", "/v1/instances/shop/restore", {})[0] == 409
    assert api.ask("DELETE", "/v1/instances/shop?grace.ms=0")[0] == 400
    assert api.ask("DELETE", "/v1/instances/shop?grace.ms=0&confirm=shop")[0] == 202
    api.world.clock.pump([0.01] * 100)
    assert api.ask("GET", "/v1/instances/shop") == (404, {"error": "there is no instance shop"})
    assert "shop.orders" not in api.world.broker.metadata.image.topics


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "sentence"),
    [
        ("PUT", "/v1/instances/a.b", {}, 400, "the instance name 'a.b' is not valid"),
        ("PUT", "/v1/instances/shop", {"properties": {"limit.topic": 1}}, 400, "limit.topic is not a property of"),
        ("PUT", "/v1/instances/shop", {"properties": {"secret": "x"}}, 400, "secret is not set by hand"),
        ("PUT", "/v1/instances/shop", {"properties": {"limit.topics": {}}}, 400, "limit.topics is not valid"),
        ("PUT", "/v1/instances/shop", {"properties": {"description": "\ud800"}}, 400, "description is not valid"),
        ("PUT", "/v1/instances/shop", {"properties": []}, 400, "properties is not valid: it takes an object"),
        ("PUT", "/v1/instances/shop", {"propertys": {}}, 400, "'propertys' is no field of the body"),
        ("PUT", "/v1/instances/shop", [], 400, "the body is not valid: it takes an object"),
        ("PUT", "/v1/instances/shop", b"{", 400, "the body is not valid JSON"),
        ("PUT", "/v1/instances/shop", b"[" * 100_000, 400, "the body is not valid JSON"),
        ("PUT", "/v1/instances/shop", b"x" * (MAX_BODY_BYTES + 1), 413, "the body has more than 524288 bytes"),
        ("PATCH", "/v1/instances/shop", {"properties": {}}, 404, "there is no instance shop"),
        # Without the inner list the whitelist would be empty, and let everybody in.
        ("PUT", "/v1/instances/new", {"properties": {"whitelist": [["10.0.0.0/8"]]}}, 400, "whitelist is not valid"),
        ("PUT", "/v1/instances/shop/whitelist", {"networks": "x"}, 400, "networks is not valid: it takes a list"),
        ("POST", "/v1/instances/shop", {}, 405, "/v1/instances/{name} serves GET, PUT, PATCH, DELETE"),
        ("GET", "/v1/instances/", None, 404, "there is no such path: see /docs"),
        ("GET", "/v1/instances/shop/x/y", None, 404, "there is no such path: see /docs"),
        ("GET", "/v1", None, 404, "there is no such path: see /docs"),
    ],
)
def test_wrong_requests_are_one_sentence(
    api: Api, method: str, path: str, body: Any, status: int, sentence: str
) -> None:
    answered, value = api.ask(method, path, body)
    assert answered == status
    assert list(value) == ["error"] and value["error"].startswith(sentence)
    assert not api.world.broker.instances


def test_a_write_that_is_no_json_is_refused(api: Api) -> None:
    assert api.ask("PUT", "/v1/instances/shop", {}, kind="text/plain")[0] == 415
    assert not api.world.broker.instances


def test_nothing_is_open_unless_configured(open_api: Callable[..., Api]) -> None:
    world = open_api().world
    for path, methods in OPERATIONS.items():
        for method in methods:
            assert world.get(path.replace("{name}", "shop"), method=method).status == 404
    assert world.get("/openapi.json").status == 404


def test_wrong_logins_are_refused_and_bounded(api: Api) -> None:
    assert api.ask("GET", "/v1/instances", authorization=None)[0] == 401
    wrong = ["Bearer x", "Bearer abc", f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Bearer "]
    for authorization in wrong[:MAX_FAILURES]:
        assert api.ask("GET", "/v1/instances", authorization=authorization)[0] == 401
    status, value = api.ask("GET", "/v1/instances")
    assert status == 429 and value["error"].startswith("too many wrong logins from ")
    api.world.clock.advance(FAILURE_PERIOD_S)
    assert api.ask("GET", "/v1/instances")[0] == 200
    api.token_file.write_text("")
    assert api.ask("GET", "/v1/instances")[0] == 401
    api.token_file.unlink()
    assert api.ask("GET", "/v1/instances")[0] == 503


def add_user(api: Api, user: str) -> None:
    import hashlib

    salted = hashlib.pbkdf2_hmac("sha512", PASSWORD.encode(), b"salt", 4096)
    change = ScramUpsertion(user, ScramMechanism.SHA_512, 4096, b"salt", salted)
    outcome = api.world.run(api.world.broker.controller.alter_scram_credentials([change]))
    assert outcome == {user: None}


def basic(user: str, password: str = PASSWORD) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def test_a_token_of_an_instances_user_is_refused(api: Api) -> None:
    api.token_file.write_text(f"shop.bob:{TOKEN}\nalice:{TOKEN[::-1]}\n")
    assert api.ask("PUT", "/v1/instances/shop", {}, authorization=f"Bearer {TOKEN[::-1]}")[0] == 201
    assert api.ask("GET", "/v1/instances")[0] == 401


def test_passwords_of_the_clusters_users(open_api: Callable[..., Api]) -> None:
    api = open_api(kafkacompat_http_scram_enable="true")
    add_user(api, "alice")
    add_user(api, "shop.bob")
    assert api.ask("PUT", "/v1/instances/shop", {}, authorization=basic("alice"))[0] == 201
    for authorization in (basic("alice", "wrong"), basic("nobody"), basic("shop.bob"), f"Bearer {TOKEN}"):
        assert api.ask("GET", "/v1/instances", authorization=authorization)[0] == 401
    assert api.ask("GET", "/v1/instances", authorization=basic("alice"))[0] == 200


def test_the_authorizer_decides(tmp_path: Path, open_api: Callable[..., Api]) -> None:
    (tmp_path / "tokens").write_text("")
    api = open_api(
        kafkacompat_http_token_file=str(tmp_path / "tokens"),
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        super_users="User:root",
    )
    api.token_file.write_text(f"root:{TOKEN}\nalice:{TOKEN[::-1]}\n")
    alice = f"Bearer {TOKEN[::-1]}"
    status, value = api.ask("PUT", "/v1/instances/shop", {}, authorization=alice)
    assert status == 403 and list(value) == ["error"]
    assert not api.world.broker.instances
    assert api.ask("PUT", "/v1/instances/shop", {})[0] == 201
    assert api.ask("DELETE", "/v1/instances/shop", authorization=alice)[0] == 403


def test_the_document_and_its_page_name_every_operation(api: Api) -> None:
    status, document = api.ask("GET", "/openapi.json", authorization=None)
    assert status == 200 and document["openapi"] == "3.1.0"
    assert {path: {method.upper() for method in methods} for path, methods in document["paths"].items()} == {
        path: set(methods) for path, methods in OPERATIONS.items()
    }
    protocol, transport = connect(api.world.clock.site)
    protocol.dataReceived(b"GET /docs HTTP/1.1\r\nHost: a\r\n\r\n")
    page = parse_answer(transport.value())
    assert page.status == 200 and page.headers["content-type"].startswith("text/html")
    assert "http" not in page.body.replace("HTTP", "")
    for path, methods in OPERATIONS.items():
        for method in methods:
            assert f"<td>{method}</td><td>{path}</td>" in page.body


ODD_VALUES: list[Any] = [
    None,
    True,
    -1,
    1 << 70,
    1.5,
    "",
    "x" * 1000,
    "\ud800",
    "none",
    [],
    [[]],
    ["a", 1, None],
    {},
    {"a": []},
]
ODD_NAMES = ["shop", "", "..", "%2e%2e", "%ff", "a" * 300, "a%00b", "__x", "instances", "%F0%9F%A6%8A"]


@pytest.mark.parametrize("number", range(5))
def test_odd_requests_are_answered_in_a_sentence(api: Api, number: int) -> None:
    rng = Random(number)
    options = [*INSTANCE_PROPERTIES, "", "no.such.property"]
    for _ in range(60):
        path, methods = rng.choice(list(OPERATIONS.items()))
        properties = {rng.choice(options): rng.choice(ODD_VALUES) for _ in range(rng.randrange(4))}
        field = rng.choice(["properties", "networks", "other"])
        body = {field: rng.choice([properties, *ODD_VALUES])}
        query = rng.choice(["", "?grace.ms=x", "?grace.ms=-1", "?grace.ms=99999999999999999999", "?%ff=%ff", "?&&="])
        status, value = api.ask(rng.choice(list(methods)), path.replace("{name}", rng.choice(ODD_NAMES)) + query, body)
        assert status < 500, (path, body, value)
        assert status < 300 or (list(value) == ["error"] and "\n" not in value["error"])
