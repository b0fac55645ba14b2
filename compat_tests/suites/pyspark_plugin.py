"""A plugin of pytest that lets PySpark's own Kafka test file run on a test broker, with the Spark of this Python.

The file imports PySpark's ``KafkaUtils``, looks for jars in a build of Spark, and is skipped without Docker. This plugin brings our
`KafkaUtils`, and the jars that `spark_integration` fetches for the release.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

import kafkacompat.testing.containers
from kafkacompat.testing.kafka_utils import KafkaUtils
from spark_integration.runtime.fetching import jar_folders
from spark_integration.runtime.packages import find_installation

PACKAGES = ("pyspark.sql.tests", "pyspark.sql.tests.streaming")
"""Packages that are in no release of PySpark."""

PATIENCE_S = 300.0
"""Time for a streaming query to write its results, which the file leaves at 60 s: a busy machine needs longer."""


class PatientKafkaUtils(KafkaUtils):
    """Our `KafkaUtils` with more time for a result."""

    def assert_eventually(
        self, result_func: Callable[[], Any], expected: Any, timeout: float = PATIENCE_S, interval: float = 1.0
    ) -> None:
        """See KafkaUtils."""
        super().assert_eventually(result_func, expected, timeout, interval)


def pytest_configure() -> None:
    """Pytest: let the file find the jars and the module that it imports."""
    (folder,) = jar_folders(find_installation(), ["kafka"])
    connector, *others = sorted(map(str, folder.glob("*.jar")), key=lambda jar: "spark-sql-kafka" not in jar)
    helpers: Any = import_module("pyspark.testing.sqlutils")
    helpers.search_jar = lambda *arguments, **options: connector
    helpers.read_classpath = lambda *arguments: ",".join(others)
    for name in PACKAGES:
        sys.modules.setdefault(name, ModuleType(name))
    utils: Any = ModuleType("kafka_utils")
    utils.KafkaUtils = PatientKafkaUtils
    sys.modules["pyspark.sql.tests.streaming.kafka_utils"] = utils
    sys.modules["testcontainers"] = kafkacompat.testing.containers


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Pytest: do not ask for Docker."""
    for item in items:
        module: Any = item.getparent(pytest.Module)
        module.obj._is_docker_available = lambda: True
