"""What all connections of a listener have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafkacompat.server.connection import KafkaConnection
    from kafkacompat.server.dispatcher import Dispatcher
    from kafkacompat.server.frame_budget import FrameBudget
    from kafkacompat.timers import Clock


@dataclass
class Shared:
    """Given to every connection; ``complain(host, text)`` logs a line about a client, though not without end."""

    listener_name: str
    dispatcher: Dispatcher
    budget: FrameBudget
    max_frame_bytes: int
    clock: Clock
    connections: set[KafkaConnection]
    complain: Callable[[str, str], None]
