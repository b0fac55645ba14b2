"""``--broker=kafkacompat|kafka`` names the broker under test; every test proves itself on the real one too."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from compat_tests.brokers import BROKERS, Broker

MakeBroker = Callable[..., Broker]

SPARK = Path(__file__).parent / "spark"
LONGEST_GROUPS = (
    "test_same_answers",
    "spark",
    "test_compaction",
    "test_takeover",
    "test_java_tools",
    "test_old_clients",
    "test_releases",
    "test_matrix",
    "test_transactions",
    "test_kills",
)
"""The groups of tests that take longest, the longest first."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--broker", choices=sorted(BROKERS), default="kafkacompat", help="the broker to test")
    parser.addoption("--observations", help="a file for what the tests with Spark saw, one JSON object a line each")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Make each module a group for pytest-xdist, which runs a group on one worker, and put the longest groups first.

    A module's tests share its brokers, and all tests with Spark share a session. Short groups come last, so that no
    worker waits long for the other one.
    """
    for item in items:
        item.add_marker(pytest.mark.xdist_group(group_of(item)))
    items.sort(key=lambda item: _rank(group_of(item)))


def group_of(item: pytest.Item) -> str:
    """Return the name of the group that a test belongs to."""
    return "spark" if SPARK in item.path.parents else item.path.stem


def _rank(group: str) -> int:
    return LONGEST_GROUPS.index(group) if group in LONGEST_GROUPS else len(LONGEST_GROUPS)


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
    for one in started:
        one.stop()


_COUNTER = itertools.count()


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """Return a topic or group name that no other test uses."""
    test: str = request.node.originalname or request.node.name
    return f"{test.removeprefix('test_')}-{next(_COUNTER)}".replace("[", "-").replace("]", "")
