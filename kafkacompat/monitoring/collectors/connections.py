"""Connections and their bytes by listener, how clients were authenticated, and their libraries."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from kafkacompat.metrics.places import OTHER, SeriesPlaces
from kafkacompat.metrics.recent import RecentMean
from kafkacompat.monitoring.collectors import IN_A_TURN, Collected
from kafkacompat.monitoring.table import Family, make_metric

if TYPE_CHECKING:
    from kafkacompat.metrics.connections import ListenerTraffic
    from kafkacompat.monitoring.observed import Observed

PREFIX = "kafka_server_socket_server_metrics_"
PROCESSOR = "0"
"""The label networkProcessor, which dashboards sum over: one thread does the work of all of Kafka's."""
COUNTERS = {
    "connection_creation": "opened",
    "connection_close": "closed",
    "incoming_byte": "received_bytes",
    "outgoing_byte": "sent_bytes",
    "expired_connections_killed_count": "expired",
}
"""Kafka's names, and the attributes of `ListenerTraffic`."""
AUTHENTICATIONS = {
    (True, False): "successful_authentication",
    (False, False): "failed_authentication",
    (True, True): "successful_reauthentication",
    (False, True): "failed_reauthentication",
}
"""Kafka's names, by whether an authentication has succeeded, and whether it was a repeated one."""
THROTTLES = {"delayed": "connection_accept_throttle_time", "held": "ip_connection_accept_throttle_time"}
"""Kafka's names of mean throttle times, by the attributes of `ListenerTraffic`."""


class ConnectionCollector:
    """Collects the counters of `ListenerTraffic`, and those of the open connections."""

    def __init__(self, observed: Observed, limit: int) -> None:
        self._server = observed.server
        self._clock = observed.clock
        self._places: SeriesPlaces[tuple[str, str]] = SeriesPlaces(limit)
        self._means = RecentMean()

    def collect(self) -> Collected:
        """Yield the metrics."""
        traffic = self._server.traffic
        # Before the first turn ends: a connection that is closed later counts as an open one, and its bytes only once.
        values = {name: [getattr(item, attribute) for item in traffic.values()] for name, attribute in COUNTERS.items()}
        open_ones = list(self._server.connections)
        indexes = {listener: index for index, listener in enumerate(traffic)}
        values["connection_count"] = [0] * len(indexes)
        software: Counter[tuple[str, str, str]] = Counter()
        for number, connection in enumerate(open_ones, 1):
            listener = connection.traffic_name
            index = indexes[listener]
            values["connection_count"][index] += 1
            values["incoming_byte"][index] += connection.received_bytes
            values["outgoing_byte"][index] += connection.transport.sent_bytes
            software[(listener, *self._find_software(connection.software.name, connection.software.version))] += 1
            if number % IN_A_TURN == 0:
                yield None
        for name, numbers in values.items():
            family = Family(PREFIX + name)
            for listener, value in zip(indexes, numbers, strict=True):
                family.add(value, listener=listener, networkProcessor=PROCESSOR)
            yield family.metric
        yield from self._collect_authentications(traffic)
        yield from self._collect_limits(traffic)
        yield self._make_software(software).metric
        yield make_metric("kafkacompat_frame_bytes", self._server.budget.held_bytes)

    def _find_software(self, name: str, version: str) -> tuple[str, str]:
        """Return the labels of a library: clients choose its name, so only some have a series of their own."""
        return (name, version) if self._places.take((name, version)) else (OTHER, OTHER)

    def _make_software(self, counts: Counter[tuple[str, str, str]]) -> Family:
        family = Family(PREFIX + "connections_software")
        self._places.keep({(name, version) for _, name, version in counts})
        for (listener, name, version), count in sorted(counts.items()):
            family.add(
                count,
                clientSoftwareName=name,
                clientSoftwareVersion=version,
                listener=listener,
                networkProcessor=PROCESSOR,
            )
        return family

    @staticmethod
    def _collect_authentications(traffic: dict[str, ListenerTraffic]) -> Collected:
        families = {outcome: Family(PREFIX + name) for outcome, name in AUTHENTICATIONS.items()}
        for listener, counts in traffic.items():
            labels: dict[str, Any] = {"listener": listener, "networkProcessor": PROCESSOR}
            for (mechanism, succeeded, repeated), count in sorted(counts.authentications.items()):
                families[succeeded, repeated].add(count, **labels, mechanism=mechanism)
        yield from (family.metric for family in families.values())

    def _collect_limits(self, traffic: dict[str, ListenerTraffic]) -> Collected:
        turned_away = Family("kafkacompat_connections_turned_away")
        for listener, counts in traffic.items():
            for limit, count in sorted(counts.turned_away.items()):
                turned_away.add(count, listener=listener, limit=limit)
        yield turned_away.metric
        for attribute, name in THROTTLES.items():
            family = Family(PREFIX + name)
            for listener, counts in traffic.items():
                mean = self._means.find((name, listener), getattr(counts, attribute), self._clock.seconds())
                family.add(mean, listener=listener)
            yield family.metric
