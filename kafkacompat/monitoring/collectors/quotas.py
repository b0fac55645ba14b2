"""Throttle times of clients, by their quotas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacompat.metrics.recent import RecentMean
from kafkacompat.monitoring.collectors import IN_A_TURN, Collected
from kafkacompat.monitoring.table import Family
from kafkacompat.quotas.limits import QuotaKind
from kafkacompat.timers import steady_ms

if TYPE_CHECKING:
    from kafkacompat.monitoring.observed import Observed

RESOURCES = {
    QuotaKind.PRODUCE: "Produce",
    QuotaKind.FETCH: "Fetch",
    QuotaKind.REQUEST: "Request",
    QuotaKind.MUTATION: "ControllerMutation",
}
"""The types of Kafka's MBeans."""
LABELS = ("user", "clientId")


class QuotaCollector:
    """Collects `ThrottledClients`; the mean throttle times are those since an earlier scrape."""

    def __init__(self, observed: Observed) -> None:
        self._observed = observed
        self._means = RecentMean()

    def collect(self) -> Collected:
        """Yield the metrics."""
        clock = self._observed.clock
        now_s, now_ms = clock.seconds(), steady_ms(clock)
        mean = Family("kafka_server_quota_throttle_time")
        responses, seconds = map(Family, ("kafkacompat_throttled_responses", "kafkacompat_throttle_seconds"))
        existing = set()
        for kind, clients in self._observed.quotas.throttled.items():
            resource = RESOURCES[kind]
            responses.add(clients.total.count, resource=resource)
            seconds.add(clients.total.total_ms / 1000, resource=resource)
            clients.forget_idle(now_ms)
            for number, (client, figures) in enumerate(list(clients.by_client.items()), 1):
                existing.add((kind, client))
                labels = {label: name for label, name in zip(LABELS, client, strict=True) if name}
                mean.add(self._means.find((kind, client), figures, now_s), resource=resource, **labels)
                if number % IN_A_TURN == 0:
                    yield None
        self._means.keep(existing)
        yield from (family.metric for family in (mean, responses, seconds))
