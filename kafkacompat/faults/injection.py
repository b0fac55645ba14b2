"""Building faults into a broker: each of its listeners gets a dispatcher that applies the rules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kafkacompat.faults.application import FaultTools
from kafkacompat.faults.dispatcher import FaultyDispatcher
from kafkacompat.faults.leaders import LeaderMoves
from kafkacompat.faults.pause import Pause
from kafkacompat.server.dispatcher import Dispatcher

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafkacompat.faults.active import Faults
    from kafkacompat.handlers import Handler
    from kafkacompat.handlers.context import Peer, Services
    from kafkacompat.server.connection import KafkaConnection
    from kafkacompat.server.listener import KafkaServer


def inject_faults(faults: Faults, server: KafkaServer, services: Services, handlers: Mapping[int, Handler]) -> None:
    """Let every listener that *server* binds from now on apply the rules; *handlers* are those of the broker."""
    # Leaders are moved in the name of the broker, which needs no rights.
    own = replace(services, authorizer=None)
    moves = LeaderMoves(Dispatcher(handlers, own), services)

    def find_connection(peer: Peer) -> KafkaConnection | None:
        return next((connection for connection in server.connections if connection.peer is peer), None)

    tools = FaultTools(faults, services, Pause(services.clock), find_connection, moves.begin)
    server.wrap_dispatcher = lambda dispatcher: FaultyDispatcher(dispatcher, tools)
