"""Start: the time from the process's start to its first ApiVersions response, and its memory afterwards."""

from __future__ import annotations

from bench.row import Goal, Options, Row, Samples
from compat_tests.brokers import Broker
from compat_tests.waiting import pause

SETTLING_SECONDS = 2


def measure(broker: Broker, _: Options) -> Samples:
    """Start a broker over an empty folder; read its memory once it is idle."""
    seconds = broker.start()
    pause(SETTLING_SECONDS)
    figures = {"seconds to first answer": seconds, "resident MB": broker.resident_bytes() / 1e6}
    broker.stop()
    return figures


ROWS = [
    Row(
        "start",
        "Start",
        "A new node over an empty folder (Kafka's storage is formatted before), idle afterwards.",
        measure,
        [
            Goal("seconds to first answer", 0.6, at_least=False, is_ratio=False),
            Goal("resident MB", 60, at_least=False, is_ratio=False),
        ],
        fresh=True,
    )
]
