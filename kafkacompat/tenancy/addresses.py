"""The addresses of brokers for an instance's clients: those of the way that a client came."""

from __future__ import annotations

from typing import Protocol

from kafkacompat.config.instances import BROKER_ID, Instance
from kafkacompat.config.listeners import LISTENER_PREFIX, WILDCARD_HOSTS
from kafkacompat.metadata.advertised import ConnectionEnd, find_advertised_address
from kafkacompat.metadata.image import BrokerImage

_IPV4_IN_IPV6 = "::ffff:"


class TenantConnectionEnd(ConnectionEnd, Protocol):
    """This broker's end of a connection that belongs to an instance; ``server_name`` is the name that led to it, or ""."""

    @property
    def server_name(self) -> str: ...


def find_tenant_address(
    broker: BrokerImage, instance: Instance, connection: TenantConnectionEnd, *, is_here: bool
) -> tuple[str, int] | None:
    """Return the host and port of a broker for a client of an instance; None if the client cannot reach it.

    *is_here* says that the broker is this one.
    """
    if connection.listener_name.startswith(LISTENER_PREFIX):
        host = _find_host(broker, instance, connection, is_here=is_here)
        return None if host is None else (host, connection.local_port)
    if connection.server_name and instance.sni_advertised is not None:
        host, port = instance.sni_advertised
        return host.replace(BROKER_ID, str(broker.node_id)), port
    if not is_here and connection.listener_name not in broker.endpoints:
        return None
    return find_advertised_address(broker, connection)


def _find_host(
    broker: BrokerImage, instance: Instance, connection: TenantConnectionEnd, *, is_here: bool
) -> str | None:
    """Return the host of a broker on the instance's own listeners."""
    host = instance.advertised_hosts.get(broker.node_id)
    if host is not None:
        return host
    dialled = connection.local_host.removeprefix(_IPV4_IN_IPV6)
    if is_here and _has_own_host(instance, connection.listener_name):
        return dialled
    advertised = next((host for host, _ in broker.endpoints.values() if host), None)
    return advertised or (dialled if is_here else None)


def _has_own_host(instance: Instance, listener_name: str) -> bool:
    """Return whether a listener of the instance is bound to one host, which the broker's other addresses need not reach."""
    index = int(listener_name.rpartition("-")[2])
    addresses = instance.addresses
    return index < len(addresses) and addresses[index].host not in WILDCARD_HOSTS
