"""A plugin of pytest that lets kafka-python's integration tests run on brokers of `kafkacompat.testing`.

Their tests start each broker by ``KafkaFixture.instance``, which this plugin replaces. KAFKA_VERSION is the release that the tests
expect; the broker's listener looks like it.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from compat_tests.certificates import Authority
from compat_tests.suites.security import plain_login_module, set_scram_passwords, split_pem
from kafkacompat.testing import broker
from kafkacompat.testing.releases import find_release_name
from kafkacompat.testing.security import SCRAM_MODULE
from kafkacompat.wire.releases import find_release

RELEASE = os.environ["KAFKA_VERSION"]
USER, PASSWORD = "alice", "alice-secret"
ALLOW_EVERYONE = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


class NoProcess:
    """Stands for the process of a broker: its log is that of this process."""

    def dump_logs(self) -> None:
        """Do nothing."""


class SuiteBroker:
    """A broker with what the tests use of kafka-python's ``KafkaFixture``."""

    def __init__(self, node_id: int, transport: str, mechanism: str | None, partitions: int, tmp_dir: Any) -> None:
        self.transport, self.sasl_mechanism, self.partitions, self.replicas = transport, mechanism, partitions, 1
        self.zookeeper = None
        self.child = NoProcess()
        self.ssl_dir = None if transport != "SSL" else str(tmp_dir)
        properties: dict[str, Any] = {
            "node.id": node_id,
            "num.partitions": partitions,
            "group.min.session.timeout.ms": 1000,
            "listeners": f"{transport}://127.0.0.1:0",
            **ALLOW_EVERYONE,
            **build_security(transport, mechanism, self.ssl_dir),
        }
        if find_release(find_release_name(RELEASE)).is_since("4.0"):
            # Their properties files set it from 4.0 on. The clients are at another listener, that of the release.
            properties["advertised.listeners"] = f"{transport}://127.0.0.1:9092"
        self._kafka = broker(**properties)
        if mechanism is not None and mechanism.startswith("SCRAM"):
            set_scram_passwords(self._kafka, USER, PASSWORD)
        self.host, _, port = self._kafka.release(RELEASE).partition(":")
        self.port = int(port)

    def start(self) -> None:
        """Do nothing: the broker runs."""

    def close(self) -> None:
        """Stop the broker."""
        self._kafka.stop()

    def bootstrap_server(self) -> str:
        """Return the address for clients."""
        return f"{self.host}:{self.port}"

    def get_topic_names(self) -> list[str]:
        """Return the names of the topics."""
        names: list[str] = self._kafka.call(lambda: list(self._kafka.broker.metadata.image.topics))
        return names

    def _create_topic_via_cli(
        self, topic_name: str, num_partitions: int | None, replication_factor: int | None
    ) -> None:
        self._kafka.create_topic(topic_name, num_partitions or self.partitions, replication_factor or 1)

    def _enrich_client_params(self, params: dict[str, Any], **defaults: Any) -> dict[str, Any]:
        own: dict[str, Any] = {"bootstrap_servers": self.bootstrap_server(), "security_protocol": self.transport}
        if self.sasl_mechanism is not None:
            own |= {"sasl_mechanism": self.sasl_mechanism, "sasl_plain_username": USER, "sasl_plain_password": PASSWORD}
        if self.ssl_dir is not None:
            own |= {"ssl_cafile": f"{self.ssl_dir}/ca-cert", "ssl_check_hostname": False}
        return {**own, **defaults, **params}


def build_security(transport: str, mechanism: str | None, ssl_dir: str | None) -> dict[str, str]:
    """Return the properties of a broker for a transport and a mechanism of SASL; certificates are made in *ssl_dir*."""
    if ssl_dir is not None:
        authority = Authority(Path(ssl_dir))
        authority.certificate.rename(Path(ssl_dir, "ca-cert"))
        authority.certificate = Path(ssl_dir, "ca-cert")
        key, *certificates = split_pem(authority.issue("localhost").read_text())
        chain = "".join(certificates)
        return {"ssl.keystore.type": "PEM", "ssl.keystore.key": key, "ssl.keystore.certificate.chain": chain}
    if mechanism is None:
        return {}
    name = f"listener.name.{transport.lower()}.{mechanism.lower()}.sasl.jaas.config"
    return {
        "sasl.enabled.mechanisms": mechanism,
        name: plain_login_module([(USER, PASSWORD)]) if mechanism == "PLAIN" else f"{SCRAM_MODULE} required;",
    }


def start_broker(
    node_id: int,
    *,
    transport: str = "PLAINTEXT",
    sasl_mechanism: str | None = None,
    partitions: int = 4,
    tmp_dir: Any = None,
    **ignored: Any,
) -> SuiteBroker:
    """Stand for ``KafkaFixture.instance``."""
    return SuiteBroker(node_id, transport, sasl_mechanism, partitions, tmp_dir)


def pytest_configure() -> None:
    """Pytest: replace the brokers; the conftest of the tests is loaded by now."""
    fixtures: Any = import_module("test.integration.fixtures")
    fixtures.KafkaFixture.instance = staticmethod(start_broker)


# The source package leaves test/service.py out, which would start processes.
_service: Any = ModuleType("test.service")
_service.ExternalService = _service.SpawnedService = object
sys.modules["test.service"] = _service
