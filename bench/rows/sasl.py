"""Logins by SCRAM: connections that authenticate themselves, send one request, and close."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial

from bench.row import RECORDS, Goal, Options, Row, Samples
from bench.usage import Usage
from compat_tests.brokers import Broker
from compat_tests.raw_client import RawClient
from compat_tests.sasl_nodes import PASSWORDS, add_sasl_listener, add_scram_user, authenticate, handshake
from kafkacompat.security.sasl.client import ClientLogin, ScramClient
from kafkacompat.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse

LOGINS = 6000
CLIENTS = 3
WARM_UPS = 2
MECHANISM = "SCRAM-SHA-256"
USER = "carol"


@lru_cache
def salt_password(salt: bytes, iterations: int) -> bytes:
    """Salt the password once: the 4096 rounds are the client's work, which is not measured."""
    return hashlib.pbkdf2_hmac("sha256", PASSWORDS[USER].encode(), salt, iterations)


class PreparedClient(ScramClient):
    """A client of SCRAM that has salted its password before."""

    def _salt_password(self, salt: bytes, iterations: int) -> bytes:
        return salt_password(salt, iterations)


def measure(broker: Broker, options: Options) -> Samples:
    """Start a broker, warm it up, and measure logins."""
    port = add_sasl_listener(broker)
    with broker:
        add_scram_user(broker.port, USER, PASSWORDS[USER])
        for _ in range(WARM_UPS):
            measure_logins(broker, port, options)
        return measure_logins(broker, port, options)


def measure_logins(broker: Broker, port: int, options: Options) -> Samples:
    logins_per_client = options.count(LOGINS // CLIENTS)
    with Usage(broker) as usage, ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(partial(log_in, port), [logins_per_client] * CLIENTS))
    count = logins_per_client * CLIENTS
    return {"logins/s": count / usage.seconds, "broker CPU ms per login": usage.cpu_seconds / count * 1000}


def log_in(port: int, count: int) -> None:
    """Log in on one connection after another."""
    login = ClientLogin(MECHANISM, USER, PASSWORDS[USER])
    for number in range(count):
        with RawClient(port) as client:
            scram = PreparedClient(login, f"nonce-of-client-{number}")
            handshake(client, MECHANISM)
            final = scram.evaluate(bytes(authenticate(client, scram.begin()).auth_bytes))
            assert final is not None
            answer = authenticate(client, final)
            assert not answer.error_code, answer
            scram.evaluate(bytes(answer.auth_bytes))
            assert not client.call(ApiVersionsRequest(), ApiVersionsResponse, 0).error_code


ROWS = [
    Row(
        "sasl-logins",
        "Logins by SCRAM-SHA-256",
        "Three clients connect, authenticate themselves, request ApiVersions and close. A broker of its own for each run, warmed up by"
        " two runs of the same load.",
        measure,
        [Goal("logins/s", 1.0, at_least=True, contender=RECORDS)],
        fresh=True,
    )
]
