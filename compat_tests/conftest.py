"""``--broker=kafkacompat|kafka`` names the broker under test; every test proves itself on the real one too."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from xdist.remote import Producer

from compat_tests.brokers import BROKERS, Broker
from compat_tests.scheduling import GroupScheduling, rank_of
from compat_tests.zookeeper import ZooKeeperServer
from tests.collecting import pytest_collection

__all__ = ["pytest_collection"]
"""What pytest finds here although another module defines it."""

MakeBroker = Callable[..., Broker]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--broker", choices=sorted(BROKERS), default="kafkacompat", help="the broker to test")
    parser.addoption("--observations", help="a file for what the tests with Spark saw, one JSON object a line each")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the groups of tests that take longest first, so that no worker waits long for the others at the end."""
    items.sort(key=lambda item: rank_of(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> GroupScheduling:
    """Have pytest-xdist run each group of tests on one worker, whatever `--dist` says."""
    config.option.loadscopereorder = False
    return GroupScheduling(config, log)


@pytest.fixture(scope="session")
def broker_kind(request: pytest.FixtureRequest) -> str:
    """Which broker is under test."""
    kind: str = request.config.getoption("--broker")
    return kind


@pytest.fixture(scope="session")
def broker(broker_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One broker for all tests that only talk to it; they keep apart by the names of their topics and groups."""
    with BROKERS[broker_kind](tmp_path_factory.mktemp("broker") / "node") as running:
        yield running


@pytest.fixture
def make_broker(broker_kind: str, tmp_path: Path) -> Iterator[MakeBroker]:
    """Start further brokers, each over a folder of its own, for a test that stops or overloads one."""
    started: list[Broker] = []

    def make(properties: Mapping[str, str] | None = None) -> Broker:
        fresh = BROKERS[broker_kind](tmp_path / f"node{len(started)}", properties)
        started.append(fresh)
        fresh.start()
        return fresh

    yield make
    for started_broker in started:
        started_broker.stop()


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """One ZooKeeper for all tests that only talk to it; each has a chroot of its own."""
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


_COUNTER = itertools.count()


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """Return a topic or group name that no other test uses."""
    test: str = request.node.originalname or request.node.name
    return f"{test.removeprefix('test_')}-{next(_COUNTER)}".replace("[", "-").replace("]", "")
