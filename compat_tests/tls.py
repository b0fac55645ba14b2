"""Brokers and clients with TLS: beside its PLAINTEXT listener a broker has others by TLS.

Clients show certificates on MUTUAL, and passwords on LOGIN.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compat_tests.brokers import Broker, KafkaBroker
from compat_tests.certificates import Authority
from compat_tests.ports import free_port

LISTENERS = {"SSL": "SSL", "MUTUAL": "SSL", "LOGIN": "SASL_SSL"}
"""The protocol of each listener."""
USER, PASSWORD = "alice", "alice-pa55word"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


class TlsBroker:
    """A broker to be started with TLS listeners; ``ports`` are theirs by name.

    The broker shows ``broker.pem``; ``properties`` are those of its TLS beyond that.
    """

    def __init__(self, broker: Broker, authority: Authority, properties: Mapping[str, str] | None = None) -> None:
        self.broker = broker
        self.authority = authority
        self.ports = {name: free_port() for name in LISTENERS}
        self.key_store = authority.issue("broker")
        listeners = {"PLAINTEXT": broker.port, **self.ports}
        protocols = {"PLAINTEXT": "PLAINTEXT", **LISTENERS}
        broker.properties.update(
            {
                "advertised.listeners": _join(listeners),
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(self.key_store),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(authority.certificate),
                "listener.name.mutual.ssl.client.auth": "required",
                "listener.name.login.ssl.client.auth": "requested",
                "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.login.plain.sasl.jaas.config": f'{_PLAIN} required user_{USER}="{PASSWORD}";',
                **(properties or {}),
            }
        )
        if isinstance(broker, KafkaBroker):
            listeners["CONTROLLER"] = free_port()
            protocols["CONTROLLER"] = "PLAINTEXT"
            broker.properties["controller.quorum.voters"] = f"1@127.0.0.1:{listeners['CONTROLLER']}"
        broker.properties["listeners"] = _join(listeners)
        broker.properties["listener.security.protocol.map"] = ",".join(
            f"{name}:{protocols[name]}" for name in listeners
        )

    def bootstrap(self, listener: str = "SSL") -> str:
        """Return the address of a TLS listener."""
        return f"127.0.0.1:{self.ports[listener]}"

    def context(self, member: Path | None = None, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLContext:
        """Return the context of a raw client that trusts the authority, and shows a member's certificate if given."""
        context = ssl.create_default_context(cafile=str(self.authority.certificate))
        context.minimum_version = context.maximum_version = version
        if member is not None:
            context.load_cert_chain(member)
        return context

    def librdkafka(self, member: Path | None = None, listener: str = "SSL") -> dict[str, Any]:
        """Return the settings of confluent-kafka."""
        settings: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap(listener),
            "security.protocol": "ssl",
            "ssl.ca.location": str(self.authority.certificate),
            "log_level": 0,
        }
        if member is not None:
            settings.update({"ssl.certificate.location": str(member), "ssl.key.location": str(member)})
        if LISTENERS[listener] == "SASL_SSL":
            login = {"sasl.mechanism": "PLAIN", "sasl.username": USER, "sasl.password": PASSWORD}
            settings.update({"security.protocol": "sasl_ssl", **login})
        return settings

    def kafka_python(self, member: Path | None = None, listener: str = "SSL") -> dict[str, Any]:
        """Return the settings of kafka-python."""
        settings: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap(listener),
            "security_protocol": LISTENERS[listener],
            "ssl_context": self.context(member),
        }
        if LISTENERS[listener] == "SASL_SSL":
            settings.update(sasl_mechanism="PLAIN", sasl_plain_username=USER, sasl_plain_password=PASSWORD)
        return settings

    def java(self, folder: Path, member: Path | None = None, listener: str = "SSL") -> Path:
        """Write the file for --command-config of Kafka's tools; the client's key store is PKCS#12."""
        lines = [
            f"security.protocol={LISTENERS[listener]}",
            "ssl.truststore.type=PEM",
            f"ssl.truststore.location={self.authority.certificate}",
        ]
        if member is not None:
            lines += [f"ssl.keystore.location={member}", "ssl.keystore.type=PKCS12", "ssl.keystore.password=password"]
        if LISTENERS[listener] == "SASL_SSL":
            login = f'sasl.jaas.config={_PLAIN} required username="{USER}" password="{PASSWORD}";'
            lines += ["sasl.mechanism=PLAIN", login]
        path = folder / f"client-{'plain' if member is None else 'mutual'}.properties"
        path.write_text("\n".join(lines) + "\n")
        return path


def _join(listeners: Mapping[str, int]) -> str:
    return ",".join(f"{name}://127.0.0.1:{port}" for name, port in listeners.items())
