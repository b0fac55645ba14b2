"""What a page knows of the request: the user, the address, and the services of the broker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkacompat.monitoring.administration.answers import HttpError
from kafkacompat.web.text import reveal_hidden
from kafkacompat.wire import entities

if TYPE_CHECKING:
    from random import Random

    from twisted.internet.defer import Deferred

    from kafkacompat.monitoring.administration.access import HttpAccess
    from kafkacompat.monitoring.administration.requests import InternalRequests
    from kafkacompat.security.principals import Principal
    from kafkacompat.server.dispatcher import Dispatcher
    from kafkacompat.tenancy.registry import Instances
    from kafkacompat.tenancy.tenant_view import TenantView
    from kafkacompat.timers import Clock
    from kafkacompat.web.throughput import Throughput

MAX_QUERY_CHARACTERS = 1000


@dataclass(frozen=True)
class WebServices:
    """The parts of a broker that the page reads.

    ``access`` is None where nobody has to log in. ``run`` calls a function in a thread. ``listener`` is the listener whose addresses are
    shown, ``hosts`` are the names by which the page may be opened without a login, and ``rng`` draws keys.
    ``is_writable`` says that users may change what the broker lets them.
    """

    node_id: int
    clock: Clock
    dispatcher: Dispatcher
    instances: Instances
    access: HttpAccess | None
    throughput: Throughput
    run: Callable[..., Deferred[Any]]
    describe_usage: Callable[[str], Mapping[str, Any]]
    listener: str
    hosts: frozenset[str]
    rng: Random
    is_writable: bool


class User(NamedTuple):
    """The user of a request; ``tenant`` is the instance, None for the cluster's own. ``cookie`` is "" without a login."""

    principal: Principal
    tenant: TenantView | None
    cookie: str

    @property
    def shown(self) -> str:
        """The principal without hidden characters, for the log."""
        return reveal_hidden(str(self.principal))

    @property
    def name(self) -> str:
        """The name as the user knows it."""
        if self.tenant is None:
            return self.principal.name
        shown: str = self.tenant.names.to_client[entities.USER][self.principal.name]
        return shown


@dataclass(frozen=True)
class Visit:
    """One request for a page: ``path`` are the parts below /ui, ``query`` the first value of each name."""

    services: WebServices
    user: User
    requests: InternalRequests
    path: tuple[str, ...]
    query: Mapping[str, str]

    def text(self, name: str) -> str:
        """Return a value of the query; "" if there is none. Raises HttpError for a long one."""
        value = self.query.get(name, "")
        if len(value) > MAX_QUERY_CHARACTERS:
            raise HttpError(400, f"{name} is not valid: it takes at most {MAX_QUERY_CHARACTERS} characters")
        return value

    def number(self, name: str, default: int | None = None, *, least: int = 0, most: int = (1 << 63) - 1) -> int | None:
        """Return a whole number of the query, or the default; raises HttpError."""
        text = self.text(name).strip()
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and len(text) < 20 and least <= int(text) <= most):
            raise HttpError(400, f"{name}={text} is not valid: it takes a whole number from {least} to {most}")
        return int(text)

    def find_physical_topic(self, name: str) -> str:
        """Return the broker's name of a topic that the user sees."""
        tenant = self.user.tenant
        if tenant is None:
            return name
        physical: str = tenant.names.to_physical[entities.TOPIC][name]
        return physical
