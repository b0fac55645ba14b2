"""The suites: where their tests are, how they run, and which of them fail for a known reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from compat_tests.suites.sources import fetch_aiokafka, fetch_kafka_python, fetch_pyspark


class Suite(NamedTuple):
    """One project's integration tests. ``releases`` are those of Kafka that the broker looks like, the newest first.

    ``known`` has the reasons of tests that may fail, by their names, and ``left_out`` those of tests that do not run.
    """

    package: str
    fetch: Callable[[Path | None], Path]
    plugin: str
    tests: Sequence[str]
    releases: Sequence[str]
    list_options: Callable[[str], Sequence[str]]
    list_variables: Callable[[str], Mapping[str, str]]
    known: Mapping[str, str] = {}
    left_out: Mapping[str, str] = {}


AIOKAFKA_FILES = [
    f"tests/test_{name}.py"
    for name in (
        *("admin", "client", "conn", "consumer", "coordinator", "pep492", "producer", "sasl", "sender"),
        *("transactional_consumer", "transactional_producer"),
    )
]
"""The files with tests that use a broker."""

SUITES = {
    "kafka-python": Suite(
        package="kafka-python",
        fetch=fetch_kafka_python,
        plugin="compat_tests.suites.kafka_python_plugin",
        tests=("test/integration",),
        releases=("4.3.0", "2.8.2", "0.11.0.3"),
        list_options=lambda release: ("-o", "addopts="),
        list_variables=lambda release: {"KAFKA_VERSION": release},
        known={
            "test_describe_configs_broker_resource_returns_configs": (
                "advertised.listeners can be changed while a broker of 1.1 to 3.9 runs; here it cannot, as in Kafka 4"
            )
        },
    ),
    "aiokafka": Suite(
        package="aiokafka",
        fetch=fetch_aiokafka,
        plugin="compat_tests.suites.aiokafka_plugin",
        tests=AIOKAFKA_FILES,
        releases=("2.8.1",),
        list_options=lambda release: (
            *("--docker-image", f"kafkacompat:2.13_{release}", "--no-pull"),
            # Newer releases of pytest and its plugins warn of more than these tests allow.
            *("-W", "default"),
        ),
        list_variables=lambda release: {},
        known={
            "test_kip_345_disabled": (
                "a race in the test, lost in some runs: it expects the assignment of one consumer when another has received its own"
            )
        },
        left_out={"gssapi": "the broker has no Kerberos"},
    ),
    "pyspark": Suite(
        package="pyspark",
        fetch=fetch_pyspark,
        plugin="compat_tests.suites.pyspark_plugin",
        tests=("test_streaming_kafka_rtm.py",),
        releases=("4.3",),
        list_options=lambda release: ("--rootdir=.",),
        list_variables=lambda release: {},
    ),
}
