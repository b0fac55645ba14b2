"""The one table of routes: which instance a connection belongs to.

A connection belongs to an instance by the first of these that applies:

1. the listener that it came to, if that is an instance's own (its property ``listeners``);
2. the name in its TLS handshake (SNI), on a TLS listener of the brokers (``sni.hosts``);
3. its user, on a listener of the brokers (``sasl.users``).

A connection without an instance belongs to the operator.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kafkacompat.config.instances import EVERY_USER, Instance, InstanceAddress


class InstanceListener(NamedTuple):
    """A listener of an instance: its name, the instance's name and its address."""

    name: str
    instance_name: str
    address: InstanceAddress


class Routes:
    """The routes of all instances; only active ones have listeners and users. ``listeners`` has the listeners of instances by name."""

    def __init__(self, instances: Iterable[Instance] = ()) -> None:
        self.listeners: dict[str, InstanceListener] = {}
        self._by_host: dict[str, str] = {}
        self._users: dict[str, frozenset[str]] = {}
        self._instances: dict[str, Instance] = {}
        for instance in instances:
            self.put(instance)

    def put(self, instance: Instance) -> None:
        """Let connections reach an instance by its present properties."""
        name = instance.name
        self.remove(name)
        self._instances[name] = instance
        # A name leads to an instance that serves nobody too: its clients must not see the operator's cluster.
        self._by_host.update(dict.fromkeys(instance.sni_hosts, name))
        if not instance.is_active:
            return
        for listener_name, address in instance.listeners.items():
            self.listeners[listener_name] = InstanceListener(listener_name, name, address)
        if instance.routed_users:
            self._users[name] = instance.routed_users

    def remove(self, name: str) -> None:
        """Let no connection reach an instance."""
        instance = self._instances.pop(name, None)
        if instance is None:
            return
        for listener_name in instance.listeners:
            self.listeners.pop(listener_name, None)
        for host in instance.sni_hosts:
            # The name may lead to another instance by now, if both have changed at the same time.
            if self._by_host.get(host) == name:
                del self._by_host[host]
        self._users.pop(name, None)

    @property
    def has_server_names(self) -> bool:
        """Whether the name in a TLS handshake can lead to an instance."""
        return bool(self._by_host)

    def find_by_listener(self, listener_name: str) -> str | None:
        """Return the instance that has a listener; None for a listener of the brokers."""
        listener = self.listeners.get(listener_name)
        return None if listener is None else listener.instance_name

    def find_by_server_name(self, server_name: str) -> str | None:
        """Return the instance that a name in lower case leads to. A whole name counts before one with ``*.``."""
        return self._by_host.get(server_name) or self._by_host.get("*." + server_name.partition(".")[2])

    def leads_by_user(self, instance_name: str, user: str) -> bool:
        """Return whether a user of an instance, by its physical name, may use the brokers' own listeners."""
        users = self._users.get(instance_name, frozenset())
        return user in users or EVERY_USER in users
