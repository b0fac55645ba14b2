"""Connections and their bytes by listener, and the libraries of the clients."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kafkacompat.metrics.places import OTHER, SeriesPlaces
from kafkacompat.monitoring.collectors import Collected
from kafkacompat.monitoring.table import Family, make_metric

if TYPE_CHECKING:
    from kafkacompat.monitoring.observed import Observed

PREFIX = "kafka_server_socket_server_metrics_"
PROCESSOR = "0"
"""The label networkProcessor, which dashboards sum over: one thread does the work of all of Kafka's."""


class ConnectionCollector:
    """Collects the counters of `ListenerTraffic`, and those of the open connections."""

    def __init__(self, observed: Observed, limit: int) -> None:
        self._server = observed.server
        self._places: SeriesPlaces[tuple[str, str]] = SeriesPlaces(limit)

    def collect(self) -> Collected:
        """Yield the metrics."""
        names = ("connection_count", "connection_creation", "connection_close", "incoming_byte", "outgoing_byte")
        families = {name: Family(PREFIX + name) for name in names}
        turned_away = Family("kafkacompat_connections_turned_away")
        for listener, traffic in self._server.traffic.items():
            connections = [item for item in self._server.connections if item.peer.listener_name == listener]
            values = (
                len(connections),
                traffic.opened,
                traffic.closed,
                traffic.received_bytes + sum(connection.received_bytes for connection in connections),
                traffic.sent_bytes + sum(connection.transport.sent_bytes for connection in connections),
            )
            for family, value in zip(families.values(), values, strict=True):
                family.add(value, listener=listener, networkProcessor=PROCESSOR)
            turned_away.add(traffic.turned_away, listener=listener)
            yield None
        yield from (family.metric for family in families.values())
        yield turned_away.metric
        yield self._collect_software().metric
        yield make_metric("kafkacompat_frame_bytes", self._server.budget.held_bytes)

    def _collect_software(self) -> Family:
        """Count the connections of each library; clients choose the names, so only some have a series of their own."""
        family = Family(PREFIX + "connections_software")
        counts: Counter[tuple[str, str, str]] = Counter()
        for connection in self._server.connections:
            software = connection.software.name, connection.software.version
            if not self._places.take(software):
                software = OTHER, OTHER
            counts[(connection.peer.listener_name, *software)] += 1
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
