"""The properties of clients, in the words of each library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kafkacompat.testing.errors import BrokerError
from kafkacompat.testing.security import PLAIN_MODULE, SCRAM_MODULE, quote

if TYPE_CHECKING:
    from kafkacompat.testing.certificates import CertificateFiles


class ClientAccess(NamedTuple):
    """How a client reaches the brokers: protocol, authority, user with password and mechanism, certificate."""

    bootstrap_servers: str
    protocol: str
    ca_file: str | None
    user: tuple[str, str] | None
    mechanism: str
    certificate: CertificateFiles | None


def build_librdkafka(access: ClientAccess) -> dict[str, Any]:
    """Return the properties for librdkafka: confluent-kafka and the clients of most languages."""
    config: dict[str, Any] = {"bootstrap.servers": access.bootstrap_servers, "security.protocol": access.protocol}
    if access.ca_file is not None:
        config["ssl.ca.location"] = access.ca_file
    if access.certificate is not None:
        config["ssl.certificate.location"] = access.certificate.certificate_file
        config["ssl.key.location"] = access.certificate.key_file
    if access.user is not None:
        name, password = access.user
        config |= {"sasl.mechanism": access.mechanism, "sasl.username": name, "sasl.password": password}
    return config


def build_java(access: ClientAccess) -> dict[str, Any]:
    """Return the properties for clients in Java, and for Spark with the prefix ``kafka.``."""
    config: dict[str, Any] = {"bootstrap.servers": access.bootstrap_servers, "security.protocol": access.protocol}
    if access.ca_file is not None:
        config |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": access.ca_file}
    if access.certificate is not None:
        config |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": access.certificate.combined_file}
    if access.user is not None:
        name, password = access.user
        module = PLAIN_MODULE if access.mechanism == "PLAIN" else SCRAM_MODULE
        login = f"{module} required username={quote(name)} password={quote(password)};"
        config |= {"sasl.mechanism": access.mechanism, "sasl.jaas.config": login}
    return config


def build_kafka_python(access: ClientAccess) -> dict[str, Any]:
    """Return the keyword arguments of kafka-python."""
    config: dict[str, Any] = {
        "bootstrap_servers": access.bootstrap_servers.split(","),
        "security_protocol": access.protocol,
    }
    if access.ca_file is not None:
        config["ssl_cafile"] = access.ca_file
    if access.certificate is not None:
        config |= {"ssl_certfile": access.certificate.certificate_file, "ssl_keyfile": access.certificate.key_file}
    if access.user is not None:
        name, password = access.user
        config |= {"sasl_mechanism": access.mechanism, "sasl_plain_username": name, "sasl_plain_password": password}
    return config


def build_aiokafka(access: ClientAccess) -> dict[str, Any]:
    """Return the keyword arguments of aiokafka, which takes an SSL context."""
    config = build_kafka_python(access)
    files = [config.pop(name, None) for name in ("ssl_cafile", "ssl_certfile", "ssl_keyfile")]
    if files[0] is not None:
        import ssl

        config["ssl_context"] = context = ssl.create_default_context(cafile=files[0])
        if files[1] is not None:
            context.load_cert_chain(files[1], files[2])
    return config


CLIENTS = {
    "librdkafka": build_librdkafka,
    "java": build_java,
    "kafka-python": build_kafka_python,
    "aiokafka": build_aiokafka,
}


def build_client_config(client: str, access: ClientAccess) -> dict[str, Any]:
    """Return the properties for a kind of client; raises BrokerError for an unknown one."""
    if client not in CLIENTS:
        raise BrokerError(f"client={client!r}: give one of {', '.join(CLIENTS)}")
    return CLIENTS[client](access)
