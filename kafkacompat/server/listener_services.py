"""What the connections of one listener share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafkacompat.metrics.connections import ListenerTraffic
from kafkacompat.quotas.client_quotas import ClientQuotas

if TYPE_CHECKING:
    from kafkacompat.metrics.requests import RequestMetrics
    from kafkacompat.server.connection import KafkaConnection
    from kafkacompat.server.dispatcher import Dispatcher
    from kafkacompat.server.frame_budget import FrameBudget
    from kafkacompat.server.instance_connections import InstanceConnections
    from kafkacompat.server.sasl_gate import SaslGate
    from kafkacompat.timers import Clock


@dataclass
class ListenerServices:
    """What the connections of one listener share.

    ``connections`` are those of all listeners. ``complain(host, text)`` logs a line about a client, up to a bound.
    ``begin_sasl`` begins the authentication of a connection, on a listener with SASL. ``quotas`` are those of clients; nothing is measured
    while there is none. ``traffic`` counts the connections of the listener, under ``traffic_name``. ``metrics`` measures requests; None
    if nobody reads that. ``tenants`` are the connections of instances; None where there are no instances.
    """

    listener_name: str
    dispatcher: Dispatcher
    budget: FrameBudget
    max_frame_bytes: int
    clock: Clock
    connections: set[KafkaConnection]
    complain: Callable[[str, str], None]
    begin_sasl: Callable[[], SaslGate] | None = None
    quotas: ClientQuotas = field(default_factory=ClientQuotas)
    traffic: ListenerTraffic = field(default_factory=ListenerTraffic)
    metrics: RequestMetrics | None = None
    tenants: InstanceConnections | None = None
    traffic_name: str = ""
