"""The limits on connections: of the broker, of one listener, from one address (Kafka's max.connections...)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kafkacompat.quotas.connection_rates import UNLIMITED, ConnectionLimit

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig
    from kafkacompat.handlers.context import Peer


MAX_CONNECTIONS, MAX_PER_ADDRESS = "max.connections", "max.connections.per.ip"


class CountedConnection(Protocol):
    """A connection, as these limits see it."""

    peer: Peer


class Objection(NamedTuple):
    """Why a client is not accepted: the name of the limit, and a text that continues a sentence."""

    limit: str
    text: str


class ConnectionLimits:
    """Accepts or rejects new connections by the configuration in effect at that moment."""

    def __init__(self, config: Callable[[], BrokerConfig]) -> None:
        self._config = config

    def find_objection(
        self, listener_name: str, host: str, connections: Collection[CountedConnection]
    ) -> Objection | None:
        """Return why another client from this address is rejected beside the existing connections; None accepts it."""
        config = self._config()
        limit = config.int(MAX_CONNECTIONS)
        if len(connections) >= limit:
            return Objection(MAX_CONNECTIONS, f"there are {MAX_CONNECTIONS}={limit} already")
        limit = _read_listener_int(config, listener_name, MAX_CONNECTIONS)
        if limit < UNLIMITED and sum(other.peer.listener_name == listener_name for other in connections) >= limit:
            return Objection(
                MAX_CONNECTIONS, f"there are {MAX_CONNECTIONS}={limit} of the listener {listener_name} already"
            )
        limit = _address_limit(config, host)
        if limit < UNLIMITED and sum(other.peer.host == host for other in connections) >= limit:
            return Objection(MAX_PER_ADDRESS, f"there are {MAX_PER_ADDRESS}={limit} from its address already")
        return None


def find_connection_rate(config: BrokerConfig, listener_name: str, protected: str | None) -> ConnectionLimit:
    """Return how many connections a second a listener may accept; the rate of the broker does not count for *protected*."""
    name = "max.connection.creation.rate"
    of_broker = UNLIMITED if listener_name == protected and len(config.listeners) > 1 else config.int(name)
    return ConnectionLimit(_read_listener_int(config, listener_name, name), of_broker)


def _read_listener_int(config: BrokerConfig, listener_name: str, name: str) -> int:
    value = config.listener_value(listener_name, name)
    assert isinstance(value, int)
    return value


def _address_limit(config: BrokerConfig, host: str) -> int:
    for entry in filter(None, config.string("max.connections.per.ip.overrides").split(",")):
        address, _, limit = entry.rpartition(":")
        if _is_same_address(address.strip(), host):
            return int(limit)
    return config.int(MAX_PER_ADDRESS)


def _is_same_address(address: str, host: str) -> bool:
    """Return whether two texts name the same address; host names are not resolved."""
    try:
        return ip_address(address.strip("[]")) == ip_address(host)
    except ValueError:
        return address == host
