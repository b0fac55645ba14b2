"""Building faults into a broker: each of its listeners gets a dispatcher that applies the rules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kafkacompat.faults.dispatcher import FaultyDispatcher
from kafkacompat.faults.pause import Pause
from kafkacompat.faults.tools import FaultTools
from kafkacompat.server.dispatcher import Dispatcher

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafkacompat.faults.active import Faults
    from kafkacompat.handlers import Handler
    from kafkacompat.handlers.context import Peer, Services
    from kafkacompat.server.connection import KafkaConnection
    from kafkacompat.server.listener import KafkaServer


def inject_faults(faults: Faults, server: KafkaServer, services: Services, handlers: Mapping[int, Handler]) -> Pause:
    """Let every listener that *server* binds from now on apply the rules; *handlers* are those of the broker. Return its pause."""

    def move_leader(topic: str, partition: int, broker: int) -> None:
        from kafkacompat.faults.leaders import LeaderMoves

        # Leaders are moved in the name of the broker, which needs no rights.
        own = replace(services, authorizer=None)
        LeaderMoves(Dispatcher(handlers, own), services).begin(topic, partition, broker)

    def find_connection(peer: Peer) -> KafkaConnection | None:
        return next((connection for connection in server.connections if connection.peer is peer), None)

    pause = Pause(services.clock)
    faults.watch(pause)
    tools = FaultTools(faults, services, pause, find_connection, move_leader)
    server.wrap_dispatcher = lambda dispatcher: FaultyDispatcher(dispatcher, tools)
    return pause
