"""The properties of librdkafka that say what a file of --command-config says in the words of Kafka's Java clients."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kafkacompat.cli.command_config import read_command_config
from kafkacompat.cli.remote.errors import RemoteError, explain_missing_library
from kafkacompat.cli.remote.records.failures import OptionError
from kafkacompat.config import BrokerConfig
from kafkacompat.config.java_properties import parse_properties

if TYPE_CHECKING:
    from kafkacompat.cli.remote.options import Target
    from kafkacompat.security.sasl.client import Login

Settings = dict[str, Any]

CLIENT_ID = "kafkacompat"
_PROTOCOL = "security.protocol"


def import_library() -> Any:
    """Return the module confluent_kafka; raises RemoteError, which says how to install it."""
    try:
        import confluent_kafka
    except ImportError:
        raise RemoteError(explain_missing_library("confluent-kafka")) from None
    return confluent_kafka


def make_client_settings(target: Target) -> Settings:
    """Return how librdkafka connects; raises ConfigError for a file that cannot be used, and RemoteError."""
    settings: Settings = {"bootstrap.servers": target.bootstrap, "client.id": CLIENT_ID}
    if target.command_config is None:
        return settings
    security = read_command_config(target.command_config)
    given = parse_properties(target.command_config.read_text(encoding="latin-1"))
    settings[_PROTOCOL] = given.get(_PROTOCOL, "PLAINTEXT").strip()
    if "client.id" in given:
        settings["client.id"] = given["client.id"]
    if security.tls is not None:
        settings |= _make_tls_settings(given)
    if security.login is not None:
        settings |= _make_login_settings(security.login)
    return settings


def _make_tls_settings(given: Mapping[str, str]) -> Settings:
    # A command without TLS does not pay for these modules.
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    from kafkacompat.security.tls.settings import read_tls_settings
    from kafkacompat.security.tls.stores import read_file, read_key_store, read_trust_store

    own = {name: value for name, value in given.items() if name.startswith("ssl.")}
    tls = read_tls_settings(BrokerConfig({"node.id": "0", **own}), "client")
    settings: Settings = {"ssl.endpoint.identification.algorithm": "https" if tls.checks_host_name else "none"}
    trusted = read_trust_store(tls.trust_store, read_file)
    if trusted is not None:
        settings["ssl.ca.pem"] = "".join(part.public_bytes(Encoding.PEM).decode() for part in trusted)
    if tls.key_store.is_set:
        store = read_key_store(tls.key_store, read_file)
        settings["ssl.certificate.pem"] = "".join(part.public_bytes(Encoding.PEM).decode() for part in store.chain)
        settings["ssl.key.pem"] = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return settings


def _make_login_settings(login: Login) -> Settings:
    from kafkacompat.security.sasl.client import ClientLogin

    if isinstance(login, ClientLogin):
        if login.by_token:
            raise RemoteError("librdkafka knows no delegation tokens (tokenauth=true): log in as a user")
        return {
            "sasl.mechanism": login.mechanism,
            "sasl.username": login.username,
            "sasl.password": login.password,
        }
    from kafkacompat.cli.bearer_login import BlockingBearerLogin

    assert isinstance(login, BlockingBearerLogin)

    def retrieve_token(_: str) -> tuple[str, float, str, Mapping[str, str]]:
        token = login.retrieve_token()
        return token.text, token.expires_at_ms / 1000, token.subject, login.extensions

    return {"sasl.mechanism": login.mechanism, "oauth_cb": retrieve_token}


def _make_silent_logger() -> logging.Logger:
    """Return a logger that drops what librdkafka would write to standard error, beside the sentences of the command."""
    logger = logging.Logger("librdkafka")
    logger.addHandler(logging.NullHandler())
    return logger


def create_client(kind: Any, settings: Settings, option: str) -> Any:
    """Return a producer or consumer of librdkafka; raises OptionError for a property that librdkafka does not accept."""
    library = import_library()
    try:
        return kind({"log_level": 0, "logger": _make_silent_logger(), **settings})
    except library.KafkaException as problem:
        reason = problem.args[0].str()
        raise OptionError(f"librdkafka does not accept a property ({reason}): correct {option}") from None
    except (TypeError, ValueError) as problem:
        raise OptionError(f"librdkafka does not accept a property ({problem}): correct {option}") from None
