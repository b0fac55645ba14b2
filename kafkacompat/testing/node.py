"""One broker on one machine, started and stopped in the thread of the brokers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from twisted.internet.task import deferLater

from kafkacompat.broker import START_ERRORS, Broker
from kafkacompat.config import BrokerConfig, ConfigError
from kafkacompat.config.broker import PROPERTIES
from kafkacompat.config.suggestions import did_you_mean
from kafkacompat.testing.errors import BrokerError

if TYPE_CHECKING:
    from kafkacompat.host import Host

WILDCARD_HOSTS = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}


class Node:
    """A broker that can start again on what it has left. Use the methods in the thread of the brokers."""

    def __init__(self, host: Host, properties: Mapping[str, str]) -> None:
        self._host = host
        self._properties = dict(properties)
        self._broker: Broker | None = None

    @property
    def broker(self) -> Broker:
        """The broker that runs; raises BrokerError if none does."""
        if self._broker is None:
            raise BrokerError(f"broker {self._properties['node.id']} does not run: start it first")
        return self._broker

    @property
    def is_running(self) -> bool:
        """Whether the broker runs."""
        return self._broker is not None

    def find_address(self, listener: str | None = None) -> str:
        """Return ``host:port`` of a listener, by default of the first one."""
        bound = self.broker.listeners.bound
        host, port = bound[listener or next(iter(bound))]
        host = WILDCARD_HOSTS.get(host, host)
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    async def start(self) -> None:
        """Start the broker; raises BrokerError, one sentence. A later start binds the same ports again."""
        try:
            config = BrokerConfig(self._properties)
            check_names(config)
            broker = Broker(self._host, config)
            await broker.start()
        except START_ERRORS as problem:
            raise BrokerError(f"the broker cannot start: {problem}") from None
        self._broker = broker
        ports = {name: port for name, (_, port) in broker.listeners.bound.items()}
        self._properties["listeners"] = config.with_ports(ports).given["listeners"]

    async def stop(self) -> None:
        """Stop the broker in order, if it runs: clients receive the responses to their requests."""
        broker, self._broker = self._broker, None
        if broker is not None:
            await broker.stop()

    async def end(self) -> None:
        """Stop the broker at the end of its test, if it runs: clients that are still connected are not waited for."""
        if self._broker is not None:
            for connection in list(self._broker.server.connections):
                connection.finish()
            await deferLater(self._host.reactor, 0)
            for connection in list(self._broker.server.connections):
                connection.transport.abortConnection()
            await deferLater(self._host.reactor, 0)
        await self.stop()


def check_names(config: BrokerConfig) -> None:
    """Raise ConfigError for a property that no broker has: a misspelt one would have no effect."""
    for name in config.unknown_names:
        raise ConfigError(f"{name} is no property of a broker{did_you_mean(name, PROPERTIES)}")
