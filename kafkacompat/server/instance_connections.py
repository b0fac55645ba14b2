"""The connections of instances: which instance each belongs to, and those that must end because an instance has changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

from kafkacompat.config.instances import NO_LIMIT
from kafkacompat.config.listeners import LISTENER_PREFIX
from kafkacompat.security.principals import ANONYMOUS, USER_TYPE, Principal
from kafkacompat.security.sasl.mechanism import ANY_LOGIN, LoginScope, SaslError
from kafkacompat.server.connection_limits import Objection
from kafkacompat.tenancy.routes import Routes
from kafkacompat.timers import Clock, make_steps
from kafkacompat.wire import entities

if TYPE_CHECKING:
    from kafkacompat.handlers.context import Peer
    from kafkacompat.tenancy.registry import Instances
    from kafkacompat.tenancy.tenant_view import TenantView

LIMIT_CONNECTIONS, WHITELIST = "limit.connections", "whitelist"
GONE = "the instance is removed, or is being deleted"


class InstanceConnection(Protocol):
    """A connection, as this module sees it; ``tenant`` is its instance, None for the operator's."""

    peer: Peer
    principal: Principal
    tenant: TenantView | None

    def cut_off(self, reason: str) -> None:
        """Close at once, and log one line with the reason."""


class InstanceConnections:
    """Assigns connections to instances, counts them, and closes those that an instance no longer admits.

    *find_required* returns the listeners that serve only clients of an instance. ``routes`` is the table of routes; `update`
    renews it, and is to be called after each change of instances.
    """

    def __init__(
        self,
        instances: Instances,
        connections: Collection[InstanceConnection],
        clock: Clock,
        find_required: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self.routes = Routes()
        self._instances = instances
        self._connections = connections
        self._clock = clock
        self._find_required = find_required
        self._counts: Counter[str] = Counter()

    def __bool__(self) -> bool:
        return bool(self._instances) or bool(self._find_required())

    def count(self, instance_name: str) -> int:
        """Return how many connections an instance has on this broker."""
        return self._counts[instance_name]

    # Changes of instances

    def update(self, changed: Collection[str]) -> None:
        """Follow the *changed* instances: connections see the properties at once, and close if those no longer admit them."""
        by_name = self._instances.by_name
        for name in changed:
            self.routes.remove(name)
        for name in changed:
            if name in by_name:
                self.routes.put(by_name[name].instance)
        ending: list[tuple[InstanceConnection, str]] = []
        for connection in list(self._connections):
            before = connection.tenant
            if before is None:
                continue
            view = by_name.get(before.name)
            if view is before:
                continue
            reason = self._move(connection, before, view)
            if reason is not None:
                ending.append((connection, reason))
        make_steps(self._clock, chain(_cut_off(ending), self._end_foreign_users()))

    def _move(self, connection: InstanceConnection, before: TenantView, view: TenantView | None) -> str | None:
        """Let a connection see the new properties of its instance; return why it must end, or None."""
        if view is None or view.instance.cluster_id != before.instance.cluster_id:
            # Another instance of the same name is not the client's.
            return GONE
        connection.tenant = view
        reason = self._find_reason(view, connection.peer.host)
        if reason is not None:
            return reason
        user = connection.principal.name
        if not view.has_user(user):
            return f"its user {user} belongs to the instance {view.name} no more"
        return None if self._is_routed(connection, view.name) else f"nothing leads it to the instance {view.name} now"

    def _is_routed(self, connection: InstanceConnection, instance_name: str) -> bool:
        """Return whether the way that a connection came still leads to its instance."""
        peer = connection.peer
        if peer.listener_name.startswith(LISTENER_PREFIX):
            # The listener ends its connections when it is unbound.
            return True
        if peer.server_name:
            return self.routes.find_by_server_name(peer.server_name) == instance_name
        return self.routes.leads_by_user(instance_name, connection.principal.name)

    def _end_foreign_users(self) -> Iterator[None]:
        """Close the operator's connections whose users belong to an instance by now."""
        for connection in list(self._connections):
            if connection.tenant is None and connection.principal != ANONYMOUS:
                owner = self._instances.find_owner(entities.USER, connection.principal.name)
                if owner is not None:
                    connection.cut_off(f"its user belongs to the instance {owner.name} now")
                yield

    # New connections

    def find_objection(self, listener_name: str, host: str) -> Objection | None:
        """Return why a client of an instance's listener is not accepted; None accepts it."""
        view = self._find_view(self.routes.find_by_listener(listener_name))
        if view is None:
            return Objection(WHITELIST, GONE)
        reason = self._find_reason(view, host)
        return self._check_limit(view) if reason is None else Objection(WHITELIST, reason)

    def join_by_listener(self, connection: InstanceConnection, *, awaits_user: bool) -> str | None:
        """Assign a new connection to its listener's instance; return why it must end, or None.

        *awaits_user* says that TLS or SASL may still assign a connection of a broker's own listener.
        """
        name = self.routes.find_by_listener(connection.peer.listener_name)
        if name is None:
            return None if awaits_user else self._check_required(connection)
        return self._join(connection, name)

    def join_by_server_name(self, connection: InstanceConnection, server_name: str) -> str | None:
        """Assign a connection by the name in its TLS handshake, if that leads to an instance; return why it must end, or None.

        A connection of an instance's own listener stays with that instance.
        """
        name = self.routes.find_by_server_name(server_name) if connection.tenant is None else None
        if name is None:
            return None
        connection.peer = replace(connection.peer, server_name=server_name)
        return self._join(connection, name)

    def join_by_user(self, connection: InstanceConnection, principal: Principal) -> str | None:
        """Note the user of a connection, by the brokers' name, and assign it by that if it has no instance yet.

        Return why the connection must end, or None.
        """
        if not self.find_scope(connection).owns(principal.name):
            return f"the user {principal.name} may not use this address"
        connection.principal = principal
        if connection.tenant is not None:
            return None
        owner = self._instances.find_owner(entities.USER, principal.name)
        return self._check_required(connection) if owner is None else self._join(connection, owner.name)

    def join_by_certificate(self, connection: InstanceConnection, principal: Principal) -> str | None:
        """Do the same for the user that a certificate names, or for a client without one."""
        tenant = connection.tenant
        if tenant is not None and principal != ANONYMOUS:
            try:
                principal = Principal(USER_TYPE, self.find_scope(connection).find_subject(principal.name))
            except SaslError as problem:
                return str(problem)
        elif tenant is not None:
            principal = _make_anonymous(tenant)
        return self.join_by_user(connection, principal)

    def find_scope(self, connection: InstanceConnection) -> LoginScope:
        """Return the users who may log in on a connection."""
        if not self._instances:
            return ANY_LOGIN
        from kafkacompat.tenancy.logins import BrokerLogins, InstanceLogins

        tenant, peer = connection.tenant, connection.peer
        if tenant is not None and (peer.server_name or peer.listener_name.startswith(LISTENER_PREFIX)):
            return InstanceLogins(tenant, self._instances)
        return BrokerLogins(self._instances, lambda: self.routes)

    def leave(self, connection: InstanceConnection) -> None:
        """Count a connection of an instance no more."""
        if connection.tenant is not None:
            name = connection.tenant.name
            self._counts[name] -= 1
            if not self._counts[name]:
                del self._counts[name]

    # Rules

    def _join(self, connection: InstanceConnection, name: str) -> str | None:
        view = self._find_view(name)
        if view is None:
            return GONE
        reason = self._find_reason(view, connection.peer.host)
        if reason is not None:
            return reason
        objection = self._check_limit(view)
        if objection is not None:
            return objection.text
        connection.tenant = view
        self._counts[name] += 1
        if connection.principal == ANONYMOUS:
            connection.principal = _make_anonymous(view)
        return None

    def _find_view(self, name: str | None) -> TenantView | None:
        return None if name is None else self._instances.by_name.get(name)

    def _find_reason(self, view: TenantView, host: str) -> str | None:
        """Return why an instance does not serve a client at an address, or None."""
        instance = view.instance
        if not instance.is_active:
            return GONE
        if instance.whitelist is not None and host not in instance.whitelist:
            return f"its address is not in the whitelist of the instance {view.name}"
        return None

    def _check_limit(self, view: TenantView) -> Objection | None:
        limit = view.instance.int(LIMIT_CONNECTIONS)
        if limit == NO_LIMIT or self._counts[view.name] < limit:
            return None
        text = f"there are {LIMIT_CONNECTIONS}={limit} of the instance {view.name} already"
        return Objection(LIMIT_CONNECTIONS, text)

    def _check_required(self, connection: InstanceConnection) -> str | None:
        listener_name = connection.peer.listener_name
        if listener_name not in self._find_required():
            return None
        return f"it belongs to no instance, and the listener {listener_name} serves only clients of instances"


def _make_anonymous(view: TenantView) -> Principal:
    to_physical: Any = view.names.to_physical[entities.USER]
    return Principal(USER_TYPE, to_physical[ANONYMOUS.name])


def _cut_off(ending: Iterable[tuple[InstanceConnection, str]]) -> Iterator[None]:
    for connection, reason in ending:
        connection.cut_off(reason)
        yield
