"""`broker` and `cluster`. Importing this module loads no broker: plugins of pytest are imported by every run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkacompat.testing.running import RunningBroker


def broker(folder: str | os.PathLike[str] | None = None, **properties: object) -> RunningBroker:
    """Start a broker in this process and return it; leaving its ``with`` block stops it.

    The data are in memory, or in *folder*, where a later broker finds them. *properties* are those of Kafka's brokers, with
    ``_`` for ``.``. Raises BrokerError, one sentence, if the broker cannot start.
    """
    from kafkacompat.host import ReactorHost
    from kafkacompat.testing.memory_host import InMemoryHost
    from kafkacompat.testing.node import Node
    from kafkacompat.testing.profile import build_properties, read_properties
    from kafkacompat.testing.reactor_thread import get_reactor_thread
    from kafkacompat.testing.running import RunningBroker

    thread = get_reactor_thread()
    path = None if folder is None else os.path.abspath(folder)
    host: Any = thread.call(InMemoryHost if path is None else ReactorHost, thread.reactor)
    return RunningBroker(thread, Node(host, build_properties(1, 1, path, read_properties(properties))))
