"""The quota that applies to a client: Kafka's order of precedence among users, client ids and defaults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from math import isnan
from typing import Any, NamedTuple

from kafkacompat.metadata.client_entities import CLIENT_ID, IP, USER, ClientConfig, Entity


class QuotaKind(Enum):
    """A quota of clients, by its name in AlterClientQuotas."""

    PRODUCE = "producer_byte_rate"
    FETCH = "consumer_byte_rate"
    REQUEST = "request_percentage"
    MUTATION = "controller_mutation_rate"


LEAST_LIMIT = 1e-9

_KINDS = {kind.value: kind for kind in QuotaKind}

CONNECTION_RATE = "connection_creation_rate"

Scope = tuple[str, str]
"""The clients that share one rate: a user and a client id; an empty text stands for any."""


class ClientLimit(NamedTuple):
    """A limit, and the clients that share it."""

    scope: Scope
    limit: float


_Pair = tuple["str | None", "str | None"]
_ANY = ""


class LimitTable:
    """The limits of one kind, by entity."""

    def __init__(self) -> None:
        self._of_pairs: dict[_Pair, float] = {}
        self._of_users: dict[str | None, float] = {}
        self._of_clients: dict[str | None, float] = {}

    def __bool__(self) -> bool:
        return bool(self._of_pairs or self._of_users or self._of_clients)

    def add(self, entity: Entity, limit: float) -> None:
        """Add the limit of an entity; one of an address concerns no client, and is left out."""
        if not isnan(limit):
            table, name = self._find_place(entity)
            # Old tools could store a limit of 0 in ZooKeeper, which nothing can be divided by.
            table[name] = max(limit, LEAST_LIMIT)

    def discard(self, entity: Entity) -> None:
        """Remove the limit of an entity, if it has one."""
        table, name = self._find_place(entity)
        table.pop(name, None)

    def _find_place(self, entity: Entity) -> tuple[dict[Any, float], Any]:
        names = dict(entity)
        if len(names) == 2:
            return self._of_pairs, (names[USER], names[CLIENT_ID])
        if USER in names:
            return self._of_users, names[USER]
        if CLIENT_ID in names:
            return self._of_clients, names[CLIENT_ID]
        return {}, None

    def find(self, user: str, client_id: str, default: str | None = None) -> ClientLimit | None:
        """Return the limit of a client, by the first of the eight levels that has one (Kafka's ClientQuotaManager).

        *default* names the default user and the default client id. It is None but for the clients of an instance.
        """
        return next(self._list_matches(user, client_id, default), None)

    def _list_matches(self, user: str, client_id: str, default: str | None) -> Iterator[ClientLimit]:
        pairs, users, clients = self._of_pairs, self._of_users, self._of_clients
        both, user_only, client_only = (user, client_id), (user, _ANY), (_ANY, client_id)
        for owner in (user, default):
            for pair in ((owner, client_id), (owner, default)):
                if pair in pairs:
                    yield ClientLimit(both, pairs[pair])
            if owner in users:
                yield ClientLimit(user_only, users[owner])
        for name in (client_id, default):
            if name in clients:
                yield ClientLimit(client_only, clients[name])


class ClientLimits:
    """The limits of all kinds; ``tables`` has them by kind."""

    def __init__(self) -> None:
        self.tables = {kind: LimitTable() for kind in QuotaKind}
        self._clients: Mapping[Entity, ClientConfig] = {}

    def update(self, clients: Mapping[Entity, ClientConfig]) -> None:
        """Take over the quotas of all entities; only those that differ from before take time."""
        old = self._clients
        for entity, config in clients.items():
            before = old.get(entity)
            if before is not config and before != config:
                self._replace(entity, before, config)
        for entity in [entity for entity in old if entity not in clients]:
            self._replace(entity, old[entity], None)
        self._clients = clients

    def _replace(self, entity: Entity, before: ClientConfig | None, config: ClientConfig | None) -> None:
        for name in before.quotas if before is not None else ():
            if name in _KINDS:
                self.tables[_KINDS[name]].discard(entity)
        for name, limit in config.quotas.items() if config is not None else ():
            if name in _KINDS:
                self.tables[_KINDS[name]].add(entity, limit)


def build_address_limits(clients: Mapping[Entity, ClientConfig]) -> dict[str | None, float]:
    """Return the connections per second of each address; None stands for the other addresses."""
    return {
        dict(entity)[IP]: config.quotas[CONNECTION_RATE]
        for entity, config in clients.items()
        if CONNECTION_RATE in config.quotas and IP in dict(entity)
    }
