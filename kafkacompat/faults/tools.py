"""The parts of a broker that faults act on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkacompat.faults.active import Faults
    from kafkacompat.faults.pause import Pause
    from kafkacompat.handlers.context import Peer, Services
    from kafkacompat.server.connection import KafkaConnection


@dataclass(frozen=True)
class FaultTools:
    """The rules, and the parts of the broker that they act on.

    ``find_connection`` returns the open connection of a client. ``move_leader`` begins to move the leader of a partition, by topic
    and number, to a broker; -1 for any other in-sync replica.
    """

    faults: Faults
    services: Services
    pause: Pause
    find_connection: Callable[[Peer], KafkaConnection | None]
    move_leader: Callable[[str, int, int], None]
