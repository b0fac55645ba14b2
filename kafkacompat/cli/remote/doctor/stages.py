"""The stages of a connection to one broker: resolve, connect, TLS, versions, login. Each needs the one before it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from kafkacompat.cli.command_config import ClientSecurity
from kafkacompat.cli.remote.doctor.peers import ADVICE, PeerKind, identify
from kafkacompat.cli.remote.doctor.wire_connection import ExchangeError, MissingApiError, WireConnection
from kafkacompat.storage.files.os_errors import describe_error
from kafkacompat.wire.apis.metadata import MetadataRequest
from kafkacompat.wire.apis.produce import ProduceRequest
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.schema import Versions

if TYPE_CHECKING:
    from kafkacompat.cli.remote.doctor.network import DoctorNetwork, Stream

RESOLVE, CONNECT, TLS, VERSIONS, LOGIN = "resolve", "connect", "TLS", "versions", "login"
_CLIENT_CERTIFICATE = ("certificate required", "bad certificate", "handshake failure")
_CHECK_CONFIG = "check security.protocol in the file of --command-config"


class StageError(Exception):
    """A stage failed: ``text`` names the problem, and ``advice`` the remedy."""

    def __init__(self, stage: str, text: str, advice: str) -> None:
        super().__init__(text)
        self.stage, self.text, self.advice = stage, text, advice


class DoctorAccess(NamedTuple):
    """How the doctor reaches brokers: the network, and the client's settings; each wait takes at most *timeout_s*."""

    network: DoctorNetwork
    security: ClientSecurity
    new_nonce: Callable[[], str]
    timeout_s: float


class Reached(NamedTuple):
    """A connected socket, its address, and the addresses of the host that did not accept a connection, with the reasons."""

    socket: socket.socket
    address: str
    refused: Mapping[str, str]


def resolve(access: DoctorAccess, host: str, port: int) -> list[str]:
    """Return the addresses of a host; raises StageError."""
    try:
        addresses = access.network.resolve(host, port)
    except (OSError, UnicodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
        advice = f"check the spelling, and that this machine knows the name (`getent hosts {host}`)"
        raise StageError(RESOLVE, f"{host!r} does not resolve: {reason}", advice) from None
    return addresses


def connect(access: DoctorAccess, addresses: list[str], port: int) -> Reached:
    """Connect to the first address that accepts; raises StageError."""
    refused: dict[str, str] = {}
    is_silent = False
    for address in addresses:
        try:
            return Reached(access.network.connect(address, port, access.timeout_s), address, refused)
        except TimeoutError:
            is_silent = True
            refused[address] = f"there is no answer within {access.timeout_s:g} s"
        except OSError as problem:
            refused[address] = describe_error(problem)
    reasons = "; ".join(f"{format_address(address, port)}: {reason}" for address, reason in refused.items())
    silence = "check that the machine is up and that no firewall drops the packets"
    refusal = "check the port, that the broker runs, and that it listens on this address (listeners)"
    raise StageError(CONNECT, reasons, silence if is_silent else refusal)


def format_address(host: str, port: int) -> str:
    """Return HOST:PORT, with brackets round an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def start_tls(access: DoctorAccess, reached: Reached, host: str, port: int) -> Stream:
    """Shake hands over a connection, if the client's settings want TLS; raises StageError."""
    tls = access.security.tls
    if tls is None:
        return reached.socket
    # A check without TLS does not pay for these modules.
    from kafkacompat.cli.tls_stream import TlsStream

    try:
        return TlsStream(reached.socket, tls, host)
    except OSError as problem:
        reached.socket.close()
        text = "there is no answer to the TLS handshake" if isinstance(problem, TimeoutError) else str(problem)
        raise StageError(TLS, *_explain_tls(access, reached, port, text)) from None


def _explain_tls(access: DoctorAccess, reached: Reached, port: int, text: str) -> tuple[str, str]:
    """Return the problem of a handshake, and the advice."""
    if "is not for the host" in text:
        advice = "use a host name of the certificate, or get a certificate with this name in its subjectAltName"
    elif "the certificate" in text:
        advice = (
            "add its authority to ssl.truststore.location in the file of --command-config, or renew the certificate"
        )
    elif needs_client_certificate(text):
        advice = "set ssl.keystore.location to a key whose certificate the broker trusts"
    elif " alert " in text or "in common" in text:
        advice = "compare ssl.enabled.protocols and ssl.cipher.suites of both sides, and ssl.client.auth of the broker"
    else:
        peer = identify(b"", lambda: access.network.connect(reached.address, port, access.timeout_s))
        if peer is not PeerKind.TLS:
            return f"the port {peer.value}", ADVICE[peer]
        advice = "compare ssl.enabled.protocols and ssl.cipher.suites of both sides"
    return text, advice


def needs_client_certificate(text: str) -> bool:
    """Return whether a failure of TLS says that the broker wants a certificate of the client, or another one."""
    return any(alert in text for alert in _CLIENT_CERTIFICATE)


def request_versions(access: DoctorAccess, reached: Reached, stream: Stream, port: int) -> WireConnection:
    """Return a connection that knows the broker's versions; raises StageError."""
    connection = WireConnection(stream)
    try:
        served = connection.request_versions()
    except ExchangeError as problem:
        connection.close()
        raise StageError(VERSIONS, *_explain_silence(access, reached, port, problem)) from None
    if not is_broker(served):
        connection.close()
        text = "the listener takes no records, as those of KRaft controllers do"
        raise StageError(VERSIONS, text, "give a listener of a broker (process.roles, listeners)")
    return connection


def is_broker(served: Mapping[int, Versions]) -> bool:
    """Return whether clients can use a listener that serves these versions."""
    return ProduceRequest.API_KEY in served and MetadataRequest.API_KEY in served


def _explain_silence(access: DoctorAccess, reached: Reached, port: int, problem: ExchangeError) -> tuple[str, str]:
    """Return why ApiVersions gets no response, and the advice."""
    if access.security.tls is not None:
        if needs_client_certificate(str(problem)):
            text = "the port requires a certificate of the client that the broker trusts"
            return text, "set ssl.keystore.location to a key whose certificate the broker trusts"
        return f"the port speaks TLS but then {problem}", ADVICE[PeerKind.UNKNOWN]
    peer = identify(problem.received, lambda: access.network.connect(reached.address, port, access.timeout_s))
    if peer in (PeerKind.KAFKA, PeerKind.UNKNOWN):
        advice = (
            "run this again; a broker that starts or is overloaded does so" if peer is PeerKind.KAFKA else ADVICE[peer]
        )
        return f"the port accepts connections but {problem}", advice
    return f"the port {peer.value}", ADVICE[peer]


def log_in(access: DoctorAccess, connection: WireConnection) -> str:
    """Authenticate the client; returns the mechanism, and raises StageError."""
    from kafkacompat.client.login import BrokerLogin, LoginError
    from kafkacompat.wire.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
    from kafkacompat.wire.apis.sasl_handshake import SaslHandshakeResponse

    login = access.security.login
    assert login is not None
    authentication = BrokerLogin(login, access.new_nonce)
    try:
        response = connection.request(authentication.begin(), SaslHandshakeResponse)
        _check_mechanism(login.mechanism, response.error_code, response.mechanisms)
        request = authentication.receive(response)
        while isinstance(request, SaslAuthenticateRequest):
            answer = connection.request(request, SaslAuthenticateResponse)
            if answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED:
                raise _refuse_login(login.mechanism, answer.error_message)
            request = authentication.receive(answer)
    except MissingApiError as problem:
        raise StageError(LOGIN, f"the broker {problem}", "use clients of its age, or a newer broker") from None
    except ExchangeError as problem:
        raise StageError(LOGIN, f"the broker {problem} during the login", _CHECK_CONFIG) from None
    except LoginError as problem:
        raise StageError(LOGIN, str(problem), "check sasl.jaas.config in the file of --command-config") from None
    return login.mechanism


def _check_mechanism(mechanism: str, code: int, offered: list[str]) -> None:
    if code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        listed = ", ".join(offered) or "no mechanism"
        text = f"the broker does not accept the mechanism {mechanism}; it offers {listed}"
        raise StageError(LOGIN, text, "set sasl.mechanism to one that it offers, or add this one on the broker")
    if code == ErrorCode.ILLEGAL_SASL_STATE:
        text = "the listener takes no logins"
        advice = "set security.protocol to PLAINTEXT or SSL, or give the port of a SASL listener"
        raise StageError(LOGIN, text, advice)


def _refuse_login(mechanism: str, message: str | None) -> StageError:
    said = f" ({message})" if message else ""
    text = f"the broker refuses the user or the password by {mechanism}{said}"
    advice = (
        "check both in sasl.jaas.config, and that the user exists on the broker (for SCRAM: `kafkacompat users list`)"
    )
    return StageError(LOGIN, text, advice)


def find_required_login(access: DoctorAccess, reached: Reached, host: str, port: int) -> StageError | None:
    """Return the error of a listener that wants a login from a client that has none; None if it wants none."""
    from kafkacompat.wire.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

    with suppress(OSError, StageError, ExchangeError):
        again = reached._replace(socket=access.network.connect(reached.address, port, access.timeout_s))
        connection = request_versions(access, again, start_tls(access, again, host, port), port)
        try:
            response = connection.request(SaslHandshakeRequest(mechanism="NONE"), SaslHandshakeResponse)
        finally:
            connection.close()
        if response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            offered = ", ".join(response.mechanisms) or "no mechanism"
            protocol = "SASL_PLAINTEXT" if access.security.tls is None else "SASL_SSL"
            advice = (
                f"set security.protocol={protocol}, sasl.mechanism and sasl.jaas.config in the file of --command-config"
            )
            return StageError(LOGIN, f"the listener requires a login; it offers {offered}", advice)
    return None


def open_connection(access: DoctorAccess, host: str, port: int) -> WireConnection:
    """Do all stages; raises StageError."""
    reached = connect(access, resolve(access, host, port), port)
    connection = request_versions(access, reached, start_tls(access, reached, host, port), port)
    if access.security.login is not None:
        try:
            log_in(access, connection)
        except StageError:
            connection.close()
            raise
    return connection
