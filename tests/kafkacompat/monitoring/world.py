"""A whole broker with monitoring on one clock, without a thread or a socket."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from kafkacompat.broker import Broker
from kafkacompat.client.connections import BrokerConnections
from kafkacompat.client.settings import ConnectionSettings
from kafkacompat.config import BrokerConfig
from tests.fakes.memory_host import MemoryHost
from tests.fakes.memory_network import MemoryNetwork
from tests.kafkacompat.monitoring.web import Answer, HttpClock, ask
from tests.kafkacompat.test_broker_over_memory_network import HOST, PORT, TURN_S
from tests.kafkacompat.test_broker_over_memory_network import World as BrokerWorld

Sample = tuple[str, frozenset[tuple[str, str]]]


def read_samples(text: str, *, openmetrics: bool = False) -> dict[Sample, float]:
    """Return the values of an exposition by name and labels; fail for one that is there twice."""
    samples: dict[Sample, float] = {}
    for family in (parse_openmetrics if openmetrics else parse_text)(text):
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in samples, key
            samples[key] = sample.value
    return samples


def make_key(name: str, **labels: Any) -> Sample:
    """Return the key of a sample in `read_samples`."""
    return name, frozenset((label, str(value)) for label, value in labels.items())


class World(BrokerWorld):
    """The broker of the other tests, with /metrics; keyword arguments are properties with underscores for dots."""

    clock: HttpClock

    def __init__(self, folder: Path, **properties: str) -> None:
        super().__init__(folder)
        self.clock = HttpClock()
        self.clock.advance(1_700_000_000)
        self.network = MemoryNetwork(self.clock)
        given = {
            **self.broker.config.given,
            "kafkacompat.http.listener": "127.0.0.1:9464",
            **{name.replace("_", "."): value for name, value in properties.items()},
        }
        self.broker = Broker(MemoryHost(self.clock, self.network.at(HOST), files=self.files), BrokerConfig(given))
        self.connections = BrokerConnections(
            ConnectionSettings("broker-2"), self.network.at("broker-2"), self.clock, Random(2)
        )
        self.address = self.address._replace(port=PORT)

    def get(self, path: str, *, method: str = "GET", accept: str = "") -> Answer:
        return ask(self.clock, path, method=method, accept=accept, advance=lambda: self.clock.advance(TURN_S))

    def scrape(self) -> dict[Sample, float]:
        answer = self.get("/metrics")
        assert answer.status == 200, answer.body
        return read_samples(answer.body)
