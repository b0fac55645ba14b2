"""One Spark session for all tests with Spark, and what each of them saw, for `make spark-compare`."""

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
    """Have Spark's scripts start JVMs that are soon over."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SPARK_SUBMIT_OPTS", " ".join(SHORT_LIVED))
        yield


@pytest.fixture(scope="package")
def spark() -> Iterator[Any]:
    """One local session; tests that need other SQL configs take a new one of it (`Scene.with_conf`)."""
    session = start_session("compat-tests", master="local[2]", shuffle_partitions=2)
    yield session
    session.stop()


@pytest.fixture
def scene(
    request: pytest.FixtureRequest, spark: Any, broker: Broker, make_broker: MakeBroker, name: str, tmp_path: Path
) -> Iterator[Scene]:
    """A part of the broker and of the session that no other test uses; what was noted goes to `--observations`.

    Brokers of a test's own end behind its queries, which wait a minute for one that is gone.
    """
    scene = Scene(spark, broker, name, tmp_path)
    yield scene
    for query in scene.queries:
        query.stop()
    if file := request.config.getoption("--observations"):
        observations.write(Path(file), request.node.nodeid, scene.seen, scene.topic)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--observations` run the tests alone that note any."""
    if config.getoption("--observations"):
        others = [item for item in items if "scene" not in getattr(item, "fixturenames", ())]
        items[:] = [item for item in items if item not in others]
        config.hook.pytest_deselected(items=others)
