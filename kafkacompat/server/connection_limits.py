"""How many connections there may be: in all, of one listener, from one address (Kafka's max.connections...)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from ipaddress import ip_address
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig
    from kafkacompat.handlers.context import Peer

UNLIMITED = 2**31 - 1


class CountedConnection(Protocol):
    """A connection, as far as it counts here."""

    peer: Peer


class ConnectionLimits:
    """Decides who is let in, by the configuration in effect at that moment."""

    def __init__(self, config: Callable[[], BrokerConfig]) -> None:
        self._config = config

    def find_objection(self, listener_name: str, host: str, connections: Collection[CountedConnection]) -> str | None:
        """Why one more client of this address is turned away, beside those who are there; None lets it in."""
        config = self._config()
        most = config.int("max.connections")
        if len(connections) >= most:
            return f"there are max.connections={most} already"
        most = _of_listener(config, listener_name)
        if most < UNLIMITED and sum(each.peer.listener_name == listener_name for each in connections) >= most:
            return f"there are max.connections={most} of the listener {listener_name} already"
        most = _of_address(config, host)
        if most < UNLIMITED and sum(each.peer.host == host for each in connections) >= most:
            return f"there are max.connections.per.ip={most} from its address already"
        return None


def _of_listener(config: BrokerConfig, listener_name: str) -> int:
    value = config.of_listener(listener_name, "max.connections")
    assert isinstance(value, int)
    return value


def _of_address(config: BrokerConfig, host: str) -> int:
    for entry in filter(None, config.string("max.connections.per.ip.overrides").split(",")):
        address, _, most = entry.rpartition(":")
        if _is_same_address(address.strip(), host):
            return int(most)
    return config.int("max.connections.per.ip")


def _is_same_address(address: str, host: str) -> bool:
    """Whether two texts are one address; names are not looked up."""
    try:
        return ip_address(address.strip("[]")) == ip_address(host)
    except ValueError:
        return address == host
