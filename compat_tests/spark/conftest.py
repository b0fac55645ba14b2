"""One Spark session for all tests with Spark, and their observations for `make spark-compare`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_tests.brokers import Broker
from compat_tests.conftest import MakeBroker
from compat_tests.java_tools import SHORT_LIVED
from compat_tests.spark import observations
from compat_tests.spark.scene import Scene
from spark_integration.session import start_session


@pytest.fixture(scope="package", autouse=True)
def short_lived_jvms() -> Iterator[None]:
    """Let Spark's scripts start JVMs that are optimized for short runs."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SPARK_SUBMIT_OPTS", " ".join(SHORT_LIVED))
        yield


@pytest.fixture(scope="package")
def spark() -> Iterator[Any]:
    """One local session; a test that needs other SQL configs makes a new one of it (`Scene.with_conf`)."""
    session = start_session("compat-tests", master="local[2]", shuffle_partitions=2)
    yield session
    session.stop()


@pytest.fixture
def scene(
    request: pytest.FixtureRequest, spark: Any, broker: Broker, make_broker: MakeBroker, name: str, tmp_path: Path
) -> Iterator[Scene]:
    """A part of the broker and of the session for one test alone; its observations go to `--observations`.

    A test's own brokers end after its queries, which would wait a minute for a broker that is gone.
    """
    scene = Scene(spark, broker, name, tmp_path)
    yield scene
    for query in scene.queries:
        query.stop()
    if file := request.config.getoption("--observations"):
        observations.append_observations(Path(file), request.node.nodeid, scene.seen, scene.topic)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--observations` run only the tests that record any."""
    if config.getoption("--observations"):
        others = [item for item in items if "scene" not in getattr(item, "fixturenames", ())]
        items[:] = [item for item in items if item not in others]
        config.hook.pytest_deselected(items=others)
