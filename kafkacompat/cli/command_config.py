"""``--command-config``: how a command connects to brokers, by the properties of Kafka's own tools."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kafkacompat.config import BrokerConfig, ConfigError
from kafkacompat.config.java_properties import parse_properties
from kafkacompat.storage.files.os_errors import describe_error

if TYPE_CHECKING:
    from kafkacompat.security.sasl.client import Login
    from kafkacompat.security.tls.client import ClientTls

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
DEFAULT_MECHANISM = "GSSAPI"
ENCODED_HEADER = "sasl.oauthbearer.header.urlencode"
"""A property of Kafka's clients alone."""


class ClientSecurity(NamedTuple):
    """How connections are encrypted, and how this client authenticates itself; None for a listener that needs neither."""

    tls: ClientTls | None = None
    login: Login | None = None


def read_command_config(path: Path | None) -> ClientSecurity:
    """Read the properties about security from a file of client properties. Raises ConfigError, which names the file."""
    if path is None:
        return ClientSecurity()
    try:
        # As java.util.Properties reads it.
        return _read_security(parse_properties(path.read_text(encoding="latin-1")))
    except OSError as problem:
        problem.filename = None
        raise ConfigError(f"--command-config {path} cannot be read: {describe_error(problem)}") from problem
    except ValueError as problem:
        raise ConfigError(f"--command-config {path}: {problem}") from problem


def _read_security(given: dict[str, str]) -> ClientSecurity:
    protocol = given.get("security.protocol", PROTOCOLS[0]).strip().upper()
    if protocol not in PROTOCOLS:
        raise ConfigError(f"security.protocol={protocol} is not valid: it takes one of {', '.join(PROTOCOLS)}")
    # The properties ssl.* and sasl.* of clients have the names, types and defaults of those of brokers.
    own = {name: value for name, value in given.items() if name.startswith(("ssl.", "sasl."))}
    config = BrokerConfig({"node.id": "0", **own})
    tls = _load_tls(config) if protocol.endswith("SSL") else None
    return ClientSecurity(tls, _read_login(config) if protocol.startswith("SASL_") else None)


def _load_tls(config: BrokerConfig) -> ClientTls:
    # A command without TLS does not pay for these modules.
    from kafkacompat.security.tls.client import load_client_tls
    from kafkacompat.security.tls.settings import read_tls_settings
    from kafkacompat.security.tls.stores import read_file

    return load_client_tls(read_tls_settings(config, "client"), read_file)


def _read_login(config: BrokerConfig) -> Login:
    from kafkacompat.security.sasl.client import ClientLogin
    from kafkacompat.security.sasl.login_settings import read_login_settings

    mechanism = config.given.get("sasl.mechanism", DEFAULT_MECHANISM).strip()
    settings = read_login_settings(config, None, mechanism)
    if isinstance(settings, ClientLogin):
        return settings
    from kafkacompat.cli.bearer_login import BlockingBearerLogin, make_post
    from kafkacompat.security.sasl.token_requests import TokenEndpoint

    if isinstance(settings.origin, TokenEndpoint):
        is_encoded = config.given.get(ENCODED_HEADER, "").strip().lower() == "true"
        settings = replace(settings, origin=replace(settings.origin, encodes_credentials=is_encoded))
    return BlockingBearerLogin(settings, make_post)
