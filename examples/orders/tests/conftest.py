"""What the tests share. The fixture `kafka`, an empty broker for each test, comes from kafkacompat's plugin."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from kafkacompat.testing import RunningBroker
from orders.service import ORDERS, PRICED, REJECTED, PricingService


@pytest.fixture
def topics(kafka: RunningBroker) -> None:
    """The topics of the service; orders are kept for a day."""
    kafka.create_topic(ORDERS, partitions=2, retention_ms=24 * 3600 * 1000)
    kafka.create_topic(PRICED, partitions=2)
    kafka.create_topic(REJECTED)


@pytest.fixture
def start_service(kafka: RunningBroker, topics: None) -> Iterator[Callable[[], None]]:
    """A function that starts the service in a thread, until the end of the test."""
    with ExitStack() as running:

        def start() -> None:
            service = running.enter_context(PricingService(kafka.bootstrap_servers))
            stop = threading.Event()
            thread = threading.Thread(target=service.run, args=(stop,))
            thread.start()
            running.callback(thread.join)
            running.callback(stop.set)

        yield start


@pytest.fixture
def service(start_service: Callable[[], None]) -> None:
    """The service, started before the test."""
    start_service()
