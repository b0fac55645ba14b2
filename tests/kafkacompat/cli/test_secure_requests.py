"""Requests of commands over TLS and SASL, to a broker in memory."""

from __future__ import annotations

import base64
import struct
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from kafkacompat.cli.bearer_login import BlockingBearerLogin, make_post
from kafkacompat.cli.command_config import ClientSecurity, read_command_config
from kafkacompat.cli.requests import BlockingConnection, NoResponseError
from kafkacompat.config import ConfigError
from kafkacompat.security.sasl.client import ClientLogin
from kafkacompat.security.sasl.login_settings import BearerSettings
from kafkacompat.security.sasl.mechanism import SaslError
from kafkacompat.security.sasl.plain import PlainServer, PlainUsers
from kafkacompat.security.sasl.token_requests import TokenEndpoint, UnsecuredClaims
from kafkacompat.security.tls.session import TlsError, TlsSession
from kafkacompat.wire import compiler
from kafkacompat.wire.apis.api_versions import ApiVersion, ApiVersionsResponse
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataResponse
from kafkacompat.wire.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafkacompat.wire.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.schema import Response
from tests.fakes.certificates import Authority, shared_authority, shared_member
from tests.kafkacompat.cli.test_requests import make_frame, serve_connection
from tests.kafkacompat.server.tls_world import make_properties, open_listener

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
BEARER_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
VERSIONS = {3: 2, 17: 1, 36: 1}


class BrokerSocket:
    """A connected socket whose other end is a broker with SASL by PLAIN, over TLS if *session* is given."""

    def __init__(self, session: TlsSession | None = None, *, has_sasl: bool = True) -> None:
        self._session = session
        self._received = bytearray()
        self._sent = bytearray()
        self._is_closed = False
        self.is_authenticated = not has_sasl

    def gettimeout(self) -> float:
        return 10.0

    def close(self) -> None:
        self._is_closed = True

    def sendall(self, data: bytes) -> None:
        if self._session is None:
            self._read(data)
            return
        try:
            self._read(self._session.receive(data))
        except TlsError:
            self._is_closed = True
        self._sent += self._session.take_output()

    def recv(self, most_bytes: int) -> bytes:
        assert self._sent or self._is_closed, "the command waits for ever"
        part = bytes(self._sent[:most_bytes])
        del self._sent[:most_bytes]
        return part

    def _read(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= 4:
            size = int.from_bytes(self._received[:4], "big")
            if len(self._received) < 4 + size:
                return
            self._answer(bytes(self._received[4 : 4 + size]))
            del self._received[: 4 + size]

    def _answer(self, request: bytes) -> None:
        api_key, version, correlation_id = struct.unpack_from(">hhi", request)
        response = self._find_response(api_key, request)
        if response is None:
            self._is_closed = True
            return
        frame = struct.pack(">i", correlation_id) + compiler.encode_message(response, version)
        framed = struct.pack(">i", len(frame)) + frame
        self._sent += framed if self._session is None else self._session.encrypt(framed)

    def _find_response(self, api_key: int, request: bytes) -> Response | None:
        if api_key == 18:
            served = [ApiVersion(api_key=key, min_version=0, max_version=last) for key, last in VERSIONS.items()]
            return ApiVersionsResponse(api_keys=served)
        if api_key == 17:
            is_plain = request.endswith(b"PLAIN")
            return SaslHandshakeResponse(error_code=0 if is_plain else 33, mechanisms=["PLAIN"])
        if api_key == 36:
            begin = 10 + int.from_bytes(request[8:10], "big")
            token = bytes(compiler.decode_message(SaslAuthenticateRequest, memoryview(request)[begin:], 1).auth_bytes)
            try:
                PlainServer(PlainUsers({"user_alice": "alice-secret"})).evaluate(token)
            except SaslError:
                return SaslAuthenticateResponse(error_code=58, error_message="Authentication failed")
            self.is_authenticated = True
            return SaslAuthenticateResponse()
        return MetadataResponse(cluster_id="secure") if self.is_authenticated else None


def write(folder: Path, **properties: str) -> Path:
    path = folder / "client.properties"
    lines = (f"{name.replace('_', '.')}={value}" for name, value in properties.items())
    path.write_text("\n".join(lines))
    return path


def read_cluster_id(monkeypatch: pytest.MonkeyPatch, server: BrokerSocket, security: ClientSecurity, host: str) -> Any:
    monkeypatch.setattr("socket.create_connection", lambda *_: server)
    with BlockingConnection(host, 9093, security=security) as connection:
        return connection.request(MetadataRequest(topics=None), MetadataResponse).cluster_id


def make_files(folder: Path) -> dict[str, str]:
    (folder / "ca.pem").write_text(shared_authority().pem)
    (folder / "alice.pem").write_text(shared_member("alice").pem())
    return {"ssl_truststore_type": "PEM", "ssl_truststore_location": f"{folder}/ca.pem"}


def jaas(password: str = "alice-secret") -> str:
    return f'{PLAIN_MODULE} required username="alice" password="{password}";'


@pytest.mark.parametrize("client_auth", ["none", "required"])
def test_requests_over_tls(client_auth: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listener = open_listener(make_properties(shared_member("broker"), ssl_client_auth=client_auth))
    properties = {"security_protocol": "SSL", **make_files(tmp_path)}
    if client_auth == "required":
        properties |= {"ssl_keystore_type": "PEM", "ssl_keystore_location": f"{tmp_path}/alice.pem"}
    security = read_command_config(write(tmp_path, **properties))
    server = BrokerSocket(listener.accept(), has_sasl=False)
    assert read_cluster_id(monkeypatch, server, security, "broker-1") == "secure"


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_requests_over_sasl(protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listener = open_listener(make_properties(shared_member("broker")))
    path = write(
        tmp_path, security_protocol=protocol, sasl_mechanism="PLAIN", sasl_jaas_config=jaas(), **make_files(tmp_path)
    )
    security = read_command_config(path)
    server = BrokerSocket(listener.accept() if protocol == "SASL_SSL" else None)
    assert read_cluster_id(monkeypatch, server, security, "127.0.0.1") == "secure"


def catch(monkeypatch: pytest.MonkeyPatch, server: BrokerSocket, security: ClientSecurity, host: str) -> str:
    with pytest.raises(NoResponseError) as problem:
        read_cluster_id(monkeypatch, server, security, host)
    assert "secret" not in str(problem.value)
    return str(problem.value)


def test_why_tls_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listener = open_listener(make_properties(shared_member("broker"), ssl_client_auth="required"))
    security = read_command_config(write(tmp_path, security_protocol="SSL", **make_files(tmp_path)))
    words = catch(monkeypatch, BrokerSocket(listener.accept()), security, "other-host")
    assert words == "TLS fails: the certificate 'CN=broker' is not for the host 'other-host'"
    words = catch(monkeypatch, BrokerSocket(listener.accept()), security, "broker-1")
    assert words.startswith("TLS fails: the peer refuses with the alert")
    (tmp_path / "ca.pem").write_text(Authority("other").pem)
    security = read_command_config(tmp_path / "client.properties")
    words = catch(monkeypatch, BrokerSocket(listener.accept()), security, "broker-1")
    assert words.startswith("TLS fails: the certificate 'CN=ca' is not accepted")


def test_a_listener_without_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    security = read_command_config(write(tmp_path, security_protocol="SSL", **make_files(tmp_path)))
    server = BrokerSocket()
    server.close()
    words = "it closes the connection during the TLS handshake, as listeners without TLS do"
    assert catch(monkeypatch, server, security, "broker-1") == words

    def reset(_: int) -> bytes:
        raise ConnectionResetError

    server = BrokerSocket()
    monkeypatch.setattr(server, "recv", reset)
    assert catch(monkeypatch, server, security, "broker-1") == words


def test_a_listener_without_sasl(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: bytes) -> bytes:
        api_key, _, correlation_id = struct.unpack_from(">hhi", request)
        served = ApiVersion(api_key=SaslHandshakeRequest.API_KEY, min_version=0, max_version=1)
        refusal = SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
        message = refusal if api_key == SaslHandshakeRequest.API_KEY else ApiVersionsResponse(api_keys=[served])
        version = 1 if message is refusal else 0
        return make_frame(correlation_id, compiler.encode_message(message, version))

    security = ClientSecurity(login=ClientLogin("PLAIN", "alice", "alice-secret"))
    with (
        serve_connection(answer) as port,
        pytest.raises(NoResponseError, match=r"the listener has no SASL, so name another security.protocol or"),
    ):
        BlockingConnection("127.0.0.1", port, security=security)


def test_why_a_login_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = ClientSecurity(login=ClientLogin("PLAIN", "alice", "wrong-secret"))
    assert catch(monkeypatch, BrokerSocket(), wrong, "h") == (
        "the login by PLAIN is not accepted: SASL_AUTHENTICATION_FAILED (Authentication failed)"
    )
    scram = ClientSecurity(login=ClientLogin("SCRAM-SHA-512", "alice", "alice-secret"))
    assert catch(monkeypatch, BrokerSocket(), scram, "h") == (
        "the SASL mechanism SCRAM-SHA-512 is not accepted: UNSUPPORTED_SASL_MECHANISM, it offers PLAIN"
    )
    words = catch(monkeypatch, BrokerSocket(), ClientSecurity(), "h")
    assert words == "it closes the connection, as listeners with TLS or SASL do, for which there is --command-config"


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"security_protocol": "TLS"}, "security.protocol=TLS is not valid: it takes one of PLAINTEXT, SSL"),
        ({"security_protocol": "SASL_SSL"}, "the SASL mechanism GSSAPI is not served: set one of PLAIN"),
        ({"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"}, "sasl.jaas.config has no username"),
        ({"security_protocol": "SSL", "ssl_truststore_location": "/no/file"}, "ssl.truststore.location=/no/file"),
        (
            {
                "security_protocol": "SASL_PLAINTEXT",
                "sasl_mechanism": "OAUTHBEARER",
                "sasl_oauthbearer_token_endpoint_url": "https://issuer/token",
                "sasl_jaas_config": f'{BEARER_MODULE} required clientId="a" clientSecret="secret" ssl.truststore.type="PEM"'
                ' ssl.truststore.location="/no/file";',
            },
            "ssl.truststore.location=/no/file cannot be read",
        ),
        (
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_jaas_config": jaas()[:-1]},
            "sasl.jaas.config=... is not valid: a login module's options do not end with a semicolon",
        ),
    ],
)
def test_properties_that_no_connection_can_be_made_with(properties: dict[str, str], words: str, tmp_path: Path) -> None:
    path = write(tmp_path, **properties)
    with pytest.raises(ConfigError) as problem:
        read_command_config(path)
    text = str(problem.value)
    assert text.startswith(f"--command-config {path}: ") and words in text and "secret" not in text


def test_other_properties_of_clients_have_no_effect(tmp_path: Path) -> None:
    assert read_command_config(None) == ClientSecurity()
    assert read_command_config(write(tmp_path, client_id="x", bootstrap_servers="b:1", node_id="7")) == ClientSecurity()
    with pytest.raises(ConfigError, match="cannot be read"):
        read_command_config(tmp_path)


def never() -> str:
    raise AssertionError("no nonce is needed")


def no_post() -> tuple[int, bytes]:
    raise AssertionError("no token is requested")


def test_a_command_retrieves_a_token_when_it_needs_one() -> None:
    times = iter((0, 1_000, 29_000, 31_000))
    login = BlockingBearerLogin(
        BearerSettings(UnsecuredClaims({"sub": "me"}, 60)), lambda _: no_post, lambda: next(times)
    )
    first, second, third, fourth = (login.start(never).begin() for _ in range(4))
    assert first.startswith(b"n,,\x01auth=Bearer ")
    assert first == second == third != fourth


@pytest.mark.parametrize(("encoded", "credentials"), [("false", "me:a b%"), ("true", "me:a+b%25")])
def test_an_authorization_header_may_be_encoded(encoded: str, credentials: str, tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\nsasl.oauthbearer.token.endpoint.url=https://issuer/token\n"
        "sasl.oauthbearer.client.credentials.client.id=me\nsasl.oauthbearer.client.credentials.client.secret=a b%\n"
        f"sasl.oauthbearer.header.urlencode={encoded}\n"
    )
    login: Any = read_command_config(path).login
    header = login._settings.origin.build_headers()["Authorization"]
    assert base64.b64decode(header.removeprefix("Basic ")).decode() == credentials


def test_a_provider_that_does_not_answer() -> None:
    def refuse() -> tuple[int, bytes]:
        raise ConnectionRefusedError(111, "Connection refused")

    endpoint = TokenEndpoint("http://issuer/token", "me", "hush-secret")
    with pytest.raises(SaslError, match=r"there is no bearer token: http://issuer/token does not answer: .*refused"):
        BlockingBearerLogin(BearerSettings(endpoint), lambda _: refuse).start(never)
    with pytest.raises(SaslError, match="status 401"):
        BlockingBearerLogin(BearerSettings(endpoint), lambda _: lambda: (401, b"{}")).start(never)


def test_a_secret_goes_to_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    used: list[str] = []

    def open_request(opener: urllib.request.OpenerDirector, *_: Any, **__: Any) -> None:
        used.extend(type(handler).__name__ for handler in opener.handlers)  # type: ignore[attr-defined]
        raise ConnectionRefusedError

    monkeypatch.setattr(urllib.request.OpenerDirector, "open", open_request)
    with pytest.raises(ConnectionRefusedError):
        make_post(TokenEndpoint("http://issuer/token", "me", "hush-secret"))()
    assert "HTTPHandler" in used and "ProxyHandler" not in used
