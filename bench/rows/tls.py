"""TLS 1.3: produce and fetch by the raw client, and connections that do nothing but shake hands."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.load import Load, fetch, produce, run_in_threads
from bench.row import RECORDS, Goal, Options, Row, Samples, throughput_goals
from bench.rows.produce import PARTITIONS, run_load
from bench.topics import a_topic
from bench.usage import Usage
from compat_tests.brokers import Broker
from compat_tests.certificates import Authority
from compat_tests.tls import TlsBroker

REQUESTS = 4000
PASSES = 3
HANDSHAKES = 4000
CLIENTS = 3
WARM_UPS = 2
ABOUT = (
    "A broker of its own for each run, warmed up by two runs of the same load; a certificate with a key of RSA 2048."
)

Measure = Callable[[TlsBroker, Options], Samples]


def measure_on_new_broker(measure: Measure, broker: Broker, options: Options) -> Samples:
    """Start a broker with TLS listeners, warm it up, and measure it."""
    folder: Path = broker.folder.with_name(f"{broker.folder.name}-certificates")
    secured = TlsBroker(broker, Authority(folder))
    with broker:
        for _ in range(WARM_UPS):
            measure(secured, options)
        return measure(secured, options)


def measure_produce(secured: TlsBroker, options: Options) -> Samples:
    """Send 400 MB of batches."""
    return run_load(secured.broker, options.count(REQUESTS), secured.ports["SSL"], secured.context())


def measure_fetch(secured: TlsBroker, options: Options) -> Samples:
    """Read 400 MB three times over one connection, from the page cache."""
    load, broker, port = Load.of(), secured.broker, secured.ports["SSL"]
    context = secured.context()
    with a_topic(broker, PARTITIONS) as topic:
        records = produce(broker.port, topic, load, partitions=PARTITIONS, requests=options.count(REQUESTS))
        with Usage(broker) as usage:
            size_bytes = sum(
                fetch(port, topic, load, partitions=PARTITIONS, until_records=records, tls=context)
                for _ in range(PASSES)
            )
    return usage.samples(PASSES * records, size_bytes)


def measure_handshakes(secured: TlsBroker, options: Options) -> Samples:
    """Connect, shake hands in full, and close, by three clients at once."""
    handshakes_per_client = options.count(HANDSHAKES // CLIENTS)
    with Usage(secured.broker) as usage:
        run_in_threads(
            [
                partial(shake_hands, secured.ports["SSL"], secured.context(), handshakes_per_client)
                for _ in range(CLIENTS)
            ]
        )
    count = handshakes_per_client * CLIENTS
    return {
        "handshakes/s": count / usage.seconds,
        "broker CPU ms per handshake": usage.cpu_seconds / count * 1000,
        "resident MB": secured.broker.resident_bytes() / 1e6,
    }


def shake_hands(port: int, context: ssl.SSLContext, count: int) -> None:
    """Make connections one after another, each with a session of its own."""
    for _ in range(count):
        plain = socket.create_connection(("127.0.0.1", port), 30)
        with context.wrap_socket(plain, server_hostname="127.0.0.1"):
            pass


ROWS = [
    Row(
        "tls-produce",
        "Raw produce over TLS 1.3",
        f"The load of the produce row, 400 MB, over TLS. {ABOUT}",
        partial(measure_on_new_broker, measure_produce),
        throughput_goals(1.0, 0.5),
        fresh=True,
    ),
    Row(
        "tls-fetch",
        "Raw fetch over TLS 1.3",
        f"The load of the fetch row, 400 MB three times, over TLS. {ABOUT}",
        partial(measure_on_new_broker, measure_fetch),
        throughput_goals(1.0, 0.5),
        fresh=True,
    ),
    Row(
        "tls-handshakes",
        "TLS handshakes",
        f"Three clients connect, shake hands in full, and close. {ABOUT}",
        partial(measure_on_new_broker, measure_handshakes),
        [Goal("handshakes/s", 1.0, at_least=True, contender=RECORDS)],
        fresh=True,
    ),
]
