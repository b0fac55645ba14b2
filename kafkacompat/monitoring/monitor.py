"""The monitoring of one broker: it listens from the begin of the start to the end of the stop."""

from __future__ import annotations

import logging
from random import SystemRandom
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import maybeDeferred

from kafkacompat.metrics.places import SeriesPlaces
from kafkacompat.metrics.requests import RequestMetrics
from kafkacompat.monitoring.collectors.connections import ConnectionCollector
from kafkacompat.monitoring.collectors.controller import ControllerCollector
from kafkacompat.monitoring.collectors.groups import GroupCollector
from kafkacompat.monitoring.collectors.instances import InstanceCollector
from kafkacompat.monitoring.collectors.logs import LogCollector
from kafkacompat.monitoring.collectors.partitions import PartitionPass
from kafkacompat.monitoring.collectors.process import BrokerProcessCollector
from kafkacompat.monitoring.collectors.quotas import QuotaCollector
from kafkacompat.monitoring.collectors.replicas import ReplicaCollector
from kafkacompat.monitoring.collectors.requests import RequestCollector
from kafkacompat.monitoring.collectors.telemetry import TelemetryCollector
from kafkacompat.monitoring.collectors.topics import TopicCollector
from kafkacompat.monitoring.collectors.transactions import TransactionCollector
from kafkacompat.monitoring.exposition import Collect, Scraper
from kafkacompat.monitoring.health import BrokerState, Health
from kafkacompat.monitoring.http import BoundedSite, HealthPage, MetricsPage, ReadinessPage, listen_http
from kafkacompat.monitoring.table import make_metric
from kafkacompat.telemetry.receiver import ClientTelemetry
from kafkacompat.timers import find_real_clock, now_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from random import Random

    from prometheus_client.metrics_core import Metric
    from twisted.internet.defer import Deferred
    from twisted.web.resource import Resource

    from kafkacompat.config import BrokerConfig
    from kafkacompat.metadata.image import ImageHolder
    from kafkacompat.metrics.turns import ReactorTurns
    from kafkacompat.monitoring.administration.access import HttpAccess
    from kafkacompat.monitoring.administration.for_tests import Controls
    from kafkacompat.monitoring.observed import Observed
    from kafkacompat.server.dispatcher import Dispatcher
    from kafkacompat.tenancy.registry import Instances

log = logging.getLogger(__name__)


class Monitor:
    """The HTTP listener, the metrics and the health of a broker. ``turns`` is None if they cannot be measured.

    ``requests`` and ``telemetry`` are for the server and its handlers.
    """

    def __init__(
        self, config: BrokerConfig, reactor: Any, metadata: ImageHolder, rng: Random, turns: ReactorTurns | None
    ) -> None:
        self._config = config
        self._metadata = metadata
        self._limit = limit = config.int("kafkacompat.metrics.max.items")
        self._reactor = reactor
        self._turns = turns
        self.requests = RequestMetrics(reactor.seconds)
        self.telemetry = ClientTelemetry(
            metadata, reactor, rng.randbytes, limit=limit, max_bytes=config.int("telemetry.max.bytes")
        )
        self.health = Health()
        self.access: HttpAccess | None = None
        """Authenticates users; None if the configuration lets nobody log in."""
        self.address: tuple[str, int] | None = None
        """The bound address, after `listen`."""
        self._version_one: Resource | None = None
        self._stops: list[Callable[[], None]] = []
        self._collects: list[Collect] = []
        self._begun_s = 0.0
        self._scraper = Scraper(reactor, self._list_collects)
        pages = {
            "metrics": MetricsPage(self._scraper),
            "healthz": HealthPage(),
            "readyz": ReadinessPage(self.health.find_objection),
        }
        # The deadlines of connections are in real time, also where tests own the clock.
        self._site = BoundedSite(pages, find_real_clock(reactor))
        self._port: Any = None

    def listen(self, host: str, port: int) -> None:
        """Bind the listener; raises ListenError."""
        self._port = listen_http(self._reactor, self._site, host, port)
        self.address = (host, int(self._port.getHost().port))
        log.info("Serving /metrics, /healthz and /readyz on %s:%d", *self.address)

    def observe(self, observed: Observed) -> None:
        """Collect metrics of a broker from now on: its logs are open."""
        self.health.observed = observed
        limit = self._limit
        topics, replicas = TopicCollector(SeriesPlaces(limit)), ReplicaCollector(observed, limit)
        logs, transactions = LogCollector(observed), TransactionCollector(observed)
        collectors = (
            RequestCollector(self.requests, observed),
            PartitionPass(observed, (topics, replicas, logs, transactions)),
            topics,
            ConnectionCollector(observed, limit),
            QuotaCollector(observed),
            replicas,
            logs,
            ControllerCollector(observed, self.health),
            GroupCollector(observed, limit),
            transactions,
            BrokerProcessCollector(observed, self._turns),
            InstanceCollector(observed, limit),
            TelemetryCollector(self.telemetry),
        )
        self._collects = [self._begin_scrape, *(collector.collect for collector in collectors), self._end_scrape]

    def administer(
        self,
        dispatcher: Dispatcher,
        instances: Instances,
        run: Callable[..., Deferred[Any]],
        describe_usage: Callable[[str], Mapping[str, Any]],
    ) -> None:
        """Serve /v1 from now on, if the configuration says who may use it.

        *dispatcher* answers its requests; *run* calls a function in a thread.
        """
        config, clock = self._config, self._reactor
        token_file = config.optional_string("kafkacompat.http.token.file")
        if token_file is None and not config.bool("kafkacompat.http.scram.enable"):
            return
        from kafkacompat.monitoring.administration.access import AccessSettings, HttpAccess
        from kafkacompat.monitoring.administration.pages import MAX_BODY_BYTES, ApiPage, make_document_pages

        settings = AccessSettings(token_file, config.bool("kafkacompat.http.scram.enable"))
        self.access = HttpAccess(settings, clock, run, lambda: self._metadata.image.clients, instances)
        self._version_one = page = ApiPage(
            self.access, dispatcher, lambda: now_ms(clock), SystemRandom(), describe_usage
        )
        self.add_pages({"v1": page, **make_document_pages()}, MAX_BODY_BYTES)

    def add_pages(
        self, pages: Mapping[str, Resource], max_body_bytes: int, stop: Callable[[], None] | None = None
    ) -> None:
        """Serve more pages from now on, by the first part of their paths, whose requests have bodies up to a bound.

        *stop* is called when the broker stops.
        """
        if stop is not None:
            self._stops.append(stop)
        self._site.max_body_bytes = max(self._site.max_body_bytes, max_body_bytes)
        self._site.add_pages(pages)

    def serve_tests(self, controls: Controls) -> None:
        """Serve /v1/test from now on, with the clock and the faults of this broker."""
        from kafkacompat.monitoring.administration.for_tests import MAX_BODY_BYTES, collect_tests, make_test_pages

        self.add_pages(make_test_pages(controls, self.access, self._version_one), MAX_BODY_BYTES)
        self._collects.insert(-1, lambda: collect_tests(controls))

    def _list_collects(self) -> list[Collect]:
        return self._collects

    def _begin_scrape(self) -> Iterator[Metric]:
        self._begun_s = self._reactor.seconds()
        return iter(())

    def _end_scrape(self) -> Iterator[Metric]:
        yield make_metric("kafkacompat_scrape_seconds", self._reactor.seconds() - self._begun_s)

    def note_running(self) -> None:
        """Note that the broker serves."""
        self.health.broker_state = BrokerState.RUNNING

    def note_stopping(self) -> None:
        """Note that the broker stops."""
        self.health.broker_state = BrokerState.STOPPING
        self._stop_pages()

    def _stop_pages(self) -> None:
        while self._stops:
            self._stops.pop()()

    async def close(self) -> None:
        """Stop listening."""
        self._stop_pages()
        if self._port is not None:
            await maybeDeferred(self._port.stopListening)
            self._port = None
            self._site.close()
