"""One test against several releases of Kafka: ``@pytest.mark.kafka_releases("0.11", "2.8", "4.3")``."""

from __future__ import annotations

import pytest

MARKER = "kafka_releases"
DESCRIPTION = (
    f"{MARKER}(*names): run a test once for each release of Kafka, on a broker that looks like it, "
    'such as kafka_releases("0.11", "4.3")'
)


@pytest.fixture
def kafka_release(request: pytest.FixtureRequest) -> str | None:
    """The release that the fixture `kafka` looks like in this run of the test; None without the marker."""
    release: str | None = getattr(request, "param", None)
    return release


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Pytest: repeat a marked test for each release."""
    marker = metafunc.definition.get_closest_marker(MARKER)
    if marker is None:
        return
    name = metafunc.definition.nodeid
    if kafka_release.__name__ not in metafunc.fixturenames:
        raise pytest.Collector.CollectError(
            f"{name} is marked for releases of Kafka, but uses no broker: use the fixture kafka"
        )
    if not marker.args or marker.kwargs:
        raise pytest.Collector.CollectError(f'{name}: name the releases as @pytest.mark.{MARKER}("0.11", "4.3")')
    metafunc.parametrize(kafka_release.__name__, marker.args, indirect=True)
