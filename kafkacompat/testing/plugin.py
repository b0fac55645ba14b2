"""The pytest plugin: fixtures `kafka`, `kafka_session` and `kafka_cluster`, and a report of what tests have left behind.

pytest imports this module in every run, so it imports nothing that costs time: the broker is loaded by the first test that uses it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from kafkacompat.testing import broker, cluster
from kafkacompat.testing.leftovers import LEFTOVERS
from kafkacompat.testing.release_parameters import DESCRIPTION, kafka_release, pytest_generate_tests

if TYPE_CHECKING:
    from kafkacompat.testing import RunningBroker, RunningCluster

__all__ = ["kafka_release", "pytest_generate_tests"]
"""What pytest finds here although other modules define it."""

MARKER = "kafka"
INI_NAME = "kafka_properties"
ARGUMENTS = frozenset({"folder", "tls", "users", "acls", "instances", "releases"})
"""Arguments of `broker` that are no properties."""
PACKAGES = frozenset({"kafkacompat", "spark_integration"})
FIXTURES = frozenset({"kafka", "kafka_session", "kafka_cluster"})

_reported: list[str] = []
"""Leftovers of this process and of the workers of xdist."""


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Pytest: add the option and the ini value."""
    _leave_assertions(pluginmanager)
    group = parser.getgroup("kafkacompat", "brokers of kafkacompat")
    group.addoption(
        "--kafka-property",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="property of the brokers of all fixtures, such as num.partitions=3; may be repeated",
    )
    parser.addini(INI_NAME, "properties of the brokers of all fixtures, one NAME=VALUE a line", "linelist", [])


def _leave_assertions(pluginmanager: pytest.PytestPluginManager) -> None:
    """Let pytest not rewrite the assertions of the broker's modules.

    It rewrites all modules of a package with a plugin, which takes seconds here, and longer messages have no use here. There is no
    public way to say so; without these attributes nothing but time is lost.
    """
    hook: Any = getattr(pluginmanager, "rewrite_hook", None)
    marked, cached = getattr(hook, "_must_rewrite", None), getattr(hook, "_marked_for_rewrite_cache", None)
    if isinstance(marked, set) and isinstance(cached, dict):
        marked -= PACKAGES
        cached.clear()


def pytest_configure(config: pytest.Config) -> None:
    """Pytest: declare the marker, and check the properties, so that a wrong one is reported once."""
    config.addinivalue_line(
        "markers", f"{MARKER}(**properties): properties of the broker of a test, such as num_partitions=3"
    )
    config.addinivalue_line("markers", DESCRIPTION)
    read_configured(config)


def read_configured(config: pytest.Config) -> dict[str, Any]:
    """Return the properties of the ini file and of the command line; raises pytest.UsageError."""
    properties: dict[str, Any] = {}
    for line in [*config.getini(INI_NAME), *config.getoption("--kafka-property")]:
        name, equals, value = (part.strip() for part in line.partition("="))
        if not equals or not name:
            raise pytest.UsageError(f"kafka property {line!r}: write NAME=VALUE")
        if name in ARGUMENTS:
            how = f"{name} is an argument, write @pytest.mark.kafka({name}=...)"
            raise pytest.UsageError(f"kafka property {line!r}: {how}")
        properties[name] = value
    return properties


def _read_arguments(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return the arguments of a test's broker: those of the session, and those of its markers, the closest last."""
    arguments = read_configured(request.config)
    for marker in reversed(list(request.node.iter_markers(MARKER))):
        if marker.args:
            raise pytest.UsageError(f"@pytest.mark.kafka{marker.args!r}: write the properties as num_partitions=3")
        arguments = _override(arguments, marker.kwargs)
    return arguments


def _override(arguments: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return *arguments* with *given* over them; ``num.partitions`` and ``num_partitions`` are one name."""
    names = {name.replace(".", "_") for name in given}
    return {**{name: value for name, value in arguments.items() if name.replace(".", "_") not in names}, **given}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Pytest: reject markers that would have no effect."""
    fixtures = set(getattr(item, "fixturenames", ()))
    # Another project may have a marker of this name, for tests that have nothing to do with the fixture.
    if "kafka_session" in fixtures and item.get_closest_marker("kafka_session") is not None:
        pytest.fail(
            "@pytest.mark.kafka_session has no effect on the fixture, which all tests share: write the properties in the ini file",
            pytrace=False,
        )
    # A marker of a module or a class is for those of its tests that have brokers of their own, one without properties for `-m kafka`.
    is_marked = any(marker.name == MARKER and (marker.args or marker.kwargs) for marker in item.own_markers)
    if is_marked and "kafka_session" in fixtures and fixtures.isdisjoint({"kafka", "kafka_cluster"}):
        pytest.fail(
            f"@pytest.mark.{MARKER} has no effect on kafka_session, which all tests share: use the fixture kafka",
            pytrace=False,
        )


@pytest.fixture
def kafka(request: pytest.FixtureRequest, kafka_release: str | None) -> Iterator[RunningBroker]:
    """An empty broker of the test's own; ``@pytest.mark.kafka(num_partitions=3)`` gives it properties.

    ``@pytest.mark.kafka_releases("0.11", "4.3")`` runs the test once for each release, and ``bootstrap_servers`` looks like it.
    """
    with LEFTOVERS.watch_threads(), broker(**_read_arguments(request)) as running:
        if kafka_release is not None:
            running.bootstrap_servers = running.release(kafka_release)
        yield running


@pytest.fixture(scope="session")
def kafka_session(request: pytest.FixtureRequest) -> Iterator[RunningBroker]:
    """A broker that all tests of the session share."""
    running = broker(**read_configured(request.config))
    yield running
    with LEFTOVERS.at("kafka_session"):
        running.stop()


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[Callable[..., RunningCluster]]:
    """A function that starts a cluster, `kafka_cluster(3)`, which ends with the test."""
    with LEFTOVERS.watch_threads(), ExitStack() as started:

        def start(brokers: int = 3, **arguments: Any) -> RunningCluster:
            return started.enter_context(cluster(brokers, **_override(_read_arguments(request), arguments)))

        yield start


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Pytest: if the thread of the brokers has died, a test that failed with a broker says why."""
    report = yield
    if report.when == "call":
        LEFTOVERS.has_failed = report.failed
    elif report.when == "teardown":
        LEFTOVERS.has_failed = False
    if report.failed and not FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
        thread = sys.modules.get("kafkacompat.testing.reactor_thread")
        if thread is not None and (cause := thread.describe_death()) is not None:
            report.sections.append(("brokers of kafkacompat", cause))
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Pytest: collect the leftovers; a worker of xdist sends them to the process that reports."""
    lines = LEFTOVERS.take()
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["kafkacompat"] = lines
    _reported.extend(lines)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Xdist: a worker has ended."""
    _reported.extend(getattr(node, "workeroutput", {}).get("kafkacompat", ()))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Pytest: report the leftovers."""
    if _reported:
        terminalreporter.section("kafkacompat: left behind by tests", sep="-", yellow=True)
        for line in _reported:
            terminalreporter.line(line)
        _reported.clear()
