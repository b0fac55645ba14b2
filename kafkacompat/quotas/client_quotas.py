"""The quotas of clients in force on this broker, and the limits of each client, which are resolved once.

A quota changes with the image of the metadata. All limits are resolved again then, and the rates stay: a client that has used too
much is throttled by its new limit at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from kafkacompat.metadata.client_entities import ClientConfig, Entity
from kafkacompat.metrics.throttling import MOST_CLIENTS, ThrottledClients
from kafkacompat.quotas.client_rates import MAX_KEY_LENGTH, LimitedBucket, LimitedRate, Use, UseTable
from kafkacompat.quotas.limits import ClientLimits, QuotaKind
from kafkacompat.quotas.rates import DEFAULT_WINDOWS, QuotaWindows

MOST_RESOLVED = 10_000
"""Most clients whose limits are remembered; the next one begins with an empty memory."""

EXEMPT_APIS = frozenset(
    {
        4,  # LeaderAndIsr
        5,  # StopReplica
        6,  # UpdateMetadata
        7,  # ControlledShutdown
        17,  # SaslHandshake
        27,  # WriteTxnMarkers
        36,  # SaslAuthenticate
        56,  # AlterPartition
        58,  # Envelope
        67,  # AllocateProducerIds
        10000,  # ReportTraffic
        10001,  # ReportStorage
    }
)
"""APIs between brokers, and those of clients that have not authenticated themselves, count for no quota."""


class ClientUses(NamedTuple):
    """What a client has used of its quotas, by kind; None without a quota of that kind."""

    produce: LimitedRate | None
    fetch: LimitedRate | None
    request: LimitedRate | None
    mutation: LimitedBucket | None


NO_USES = ClientUses(None, None, None, None)


class ClientQuotas:
    """Quotas of bytes, request time and controller mutations; ``active`` is False while there is no quota at all.

    ``throttled`` has the throttle times by kind, for metrics; *most_series* bounds the clients that have their own. ``windows`` are
    those of bytes and of request time. ``find_prefix`` returns the beginning of the stored names of a user's instance: its client ids
    have it, and its default entities are named by it alone. It is "" for a user of the whole cluster.
    """

    def __init__(
        self,
        windows: QuotaWindows = DEFAULT_WINDOWS,
        mutation_windows: QuotaWindows = DEFAULT_WINDOWS,
        most_series: int = MOST_CLIENTS,
    ) -> None:
        self.active = False
        self.find_prefix: Callable[[str], str] = lambda user: ""
        self.windows = windows
        self.throttled: Mapping[QuotaKind, ThrottledClients] = {
            kind: ThrottledClients(most_series) for kind in QuotaKind
        }
        self._limits = ClientLimits()
        self._resolved: dict[tuple[str, str], ClientUses | None] = {}
        forget = self._resolved.clear
        self._produce = UseTable(lambda: LimitedRate(windows), forget)
        self._fetch = UseTable(lambda: LimitedRate(windows), forget)
        # As in Kafka, the throttle time of requests is at most one window; that of bytes has no bound.
        self._request = UseTable(lambda: LimitedRate(windows, windows.length_ms), forget)
        self._mutation = UseTable(lambda: LimitedBucket(mutation_windows), forget)

    def update(self, clients: Mapping[Entity, ClientConfig]) -> None:
        """Take over the quotas of all entities."""
        self._limits.update(clients)
        self._resolved.clear()
        self.active = any(self._limits.tables.values())

    def forget(self) -> None:
        """Resolve all limits again."""
        self._resolved.clear()

    def find_uses(self, user: str, client_id: str, now_ms: int) -> ClientUses | None:
        """Return what a client has used of its quotas, None for a client without quotas."""
        key = (user, client_id)
        try:
            return self._resolved[key]
        except KeyError:
            pass
        uses = self._resolve(user, client_id, now_ms)
        if len(user) + len(client_id) <= MAX_KEY_LENGTH:
            if len(self._resolved) >= MOST_RESOLVED:
                self._resolved.clear()
            self._resolved[key] = uses
        return uses

    def _resolve(self, user: str, client_id: str, now_ms: int) -> ClientUses | None:
        prefix = self.find_prefix(user)

        def find(kind: QuotaKind, uses: UseTable[Use]) -> Use | None:
            limit = self._limits.tables[kind].find(user, prefix + client_id, prefix or None)
            return None if limit is None else uses.find(limit.scope, limit.limit, now_ms)

        client_uses = ClientUses(
            find(QuotaKind.PRODUCE, self._produce),
            find(QuotaKind.FETCH, self._fetch),
            find(QuotaKind.REQUEST, self._request),
            find(QuotaKind.MUTATION, self._mutation),
        )
        return client_uses if any(use is not None for use in client_uses) else None
