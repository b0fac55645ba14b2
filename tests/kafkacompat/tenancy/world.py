"""A whole broker with instances, on one clock and without sockets."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from kafkacompat.broker import Broker
from kafkacompat.client.connections import BrokerConnections
from kafkacompat.client.settings import BrokerAddress, ConnectionSettings
from kafkacompat.config import BrokerConfig
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.config_changes import ConfigOperation, ConfigOperationType, ResourceChange
from kafkacompat.metadata.scram_changes import ScramUpsertion
from kafkacompat.security.sasl.client import ClientLogin
from kafkacompat.wire.apis.metadata import MetadataRequest
from kafkacompat.wire.schema import Request
from tests.fakes.memory_files import MemoryFiles
from tests.fakes.memory_host import MemoryHost
from tests.kafkacompat.test_broker_over_memory_network import HOST, PORT, World

SHOP_PORT, BANK_PORT = 19001, 19002


def make_instance_change(name: str, properties: Mapping[str, str]) -> ResourceChange:
    """Return the change that gives an instance these properties alone, besides an id and a secret."""
    identity = {"cluster.id": f"{name}-cluster", "secret": f"{name}-secret"}
    operations = [
        ConfigOperation(option, ConfigOperationType.SET, value) for option, value in {**identity, **properties}.items()
    ]
    return ResourceChange(ResourceType.INSTANCE, name, operations, replace=True)


def get_topic_id(described: Any) -> bytes:
    """Return the topic id in an answer about one topic."""
    return bytes(described.topics[0].topic_id)


class InstanceWorld(World):
    """A broker, and clients on hosts with addresses. Keyword arguments are properties, with underscores for dots."""

    def __init__(self, folder: Path, **properties: str) -> None:
        super().__init__(folder)
        given = {
            "node.id": "1",
            "listeners": f"PLAINTEXT://{HOST}:{PORT}",
            "log.dirs": str(folder),
            "kafkacompat.scrub.interval.ms": "-1",
            "offsets.topic.num.partitions": "1",
            **{name.replace("_", "."): value for name, value in properties.items()},
        }
        self.files = MemoryFiles()
        self.broker = Broker(MemoryHost(self.clock, self.network.at(HOST), files=self.files), BrokerConfig(given))
        self.run(self.broker.start())

    def set_instance(self, name: str, **properties: str) -> str | None:
        """Give an instance these properties alone; return why they are refused, or None."""
        given = {option.replace("_", "."): value for option, value in properties.items()}
        (outcome,) = self.run(self.broker.controller.alter_configs([make_instance_change(name, given)]))
        self.clock.advance(0)
        return None if outcome is None else outcome.detail

    def remove_instance(self, name: str) -> None:
        """Take an instance's properties away."""
        change = ResourceChange(ResourceType.INSTANCE, name, [], replace=True)
        assert self.run(self.broker.controller.alter_configs([change])) == [None]
        self.clock.advance(0)

    def add_scram_user(self, user: str, password: str) -> None:
        """Add a user by its physical name."""
        salted = hashlib.pbkdf2_hmac("sha512", password.encode(), b"salt", 4096)
        self.run(self.broker.controller.alter_scram_credentials([ScramUpsertion(user, 2, 4096, b"salt", salted)]))

    def open_client(
        self,
        port: int,
        host: str = "10.0.0.7",
        login: ClientLogin | None = None,
        network: Any = None,
        caps: Mapping[int, int] | None = None,
    ) -> InstanceClient:
        """Return a client on a host that sends its requests to a port; *caps* are its highest versions by API key."""
        return InstanceClient(self, port, network or self.network.at(host), login, caps)

    def stop(self) -> None:
        self.run(self.broker.stop())


class InstanceClient:
    """Sends requests to one port of the broker."""

    def __init__(
        self,
        world: InstanceWorld,
        port: int,
        network: Any,
        login: ClientLogin | None,
        caps: Mapping[int, int] | None = None,
    ) -> None:
        self._world = world
        self._address = BrokerAddress(1, HOST, port)
        settings = ConnectionSettings("client", login=login, cap=dict(caps or {}).get)
        self._connections = BrokerConnections(settings, network, world.clock, Random(3))

    def ask(self, request: Request) -> Any:
        """Return the response to a request."""
        return self._world.run(self._connections.request(self._address, "requests", request, timeout_s=30.0))

    def list_brokers(self) -> list[tuple[int, str, int]]:
        """Return the brokers as Metadata has them."""
        return [(node.node_id, node.host, node.port) for node in self.ask(MetadataRequest(topics=[])).brokers]

    def close(self) -> None:
        self._connections.close()


def make_password(name: str) -> str:
    """Return a password that differs for each name."""
    return base64.b64encode(name.encode()).decode()
