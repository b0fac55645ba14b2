"""The tables of configs agree with Apache Kafka's own definitions, and accept the same values."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from compat_tests.java_tools import compile_java, run_java
from kafkacompat.config import PROPERTIES, TOPIC_CONFIGS, ConfigError, Property
from kafkacompat.config.broker import AUTHORIZER_PROPERTIES, ZOOKEEPER_PROPERTIES
from kafkacompat.config.resources import CLIENT_METRICS_CONFIGS, GROUP_CONFIGS

SOURCE = Path(__file__).parent / "java" / "ConfigFacts.java"

SAMPLES = [
    *("", " ", "x", "a,b", "a,a", "a,,b", " a , b ", "true", "FALSE", "yes", "0", "1", "-1", "-2", "-3", "+2", "1.0"),
    *("3", "4", "5", "9", "10", "11", "17", "18", "22", "23", "25", "26", "-131072", "-131073", "99", "100", "499"),
    *("500", "501", "999", "1000", "1001", "1023", "1024", "1999", "2000", "2001", "9999", "10000", "10001", "30000"),
    *("30001", "29999", "32767", "32768", "86400", "86401", "3600", "3601", "3600000", "3600001", "524287", "524288"),
    *("1048575", "1048576", "8388607", "8388608", "2147483647", "2147483648", "-2147483648", "-2147483649"),
    *("9223372036854775807", "9223372036854775808", "0.5", "0.51", "1.01", "-0.1", "1e3", "1d", "0x10", "1_0"),
    *("delete", "compact", "compact,delete", "DELETE", "producer", "zstd", "uncompressed", "none", "CreateTime"),
    *("LogAppendTime", "broker", "controller", "broker,controller", "classic", "consumer,streams", "PLAINTEXT", "SSL"),
    *("required", "requested", "bidirectional", "DOWNGRADE", "rs256", "ES256", "latest", "Earliest", "read_committed"),
    *(
        "by_duration:PT1H",
        "by_duration:P",
        "by_duration:P1DT2M",
        "*",
        "0:1",
        "0:1,2:3",
        "0:1,*",
        "1@localhost:9093",
        "1@localhost",
        "localhost:9093",
    ),
]

# Where we differ on purpose (docs/DIFFERENCES.md).
OWN_DEFAULTS = {
    "queued.max.request.bytes": "268435456",
    "process.roles": "broker,controller",
    "controller.listener.names": "",
}
# One blank or nothing: a KRaft controller needs a listener, a single node here does not.
MORE_TAKEN = {"controller.listener.names": {"", " "}}


class Fact(NamedTuple):
    table: str
    name: str
    kind: str
    default: str
    mode: str
    internal: str
    taken: str


@cache
def read_facts() -> dict[tuple[str, str], Fact]:
    done = run_java("ConfigFacts", stdin="\n".join(SAMPLES), extra_class_path=[compile_java(SOURCE)])
    rows = (Fact(*line.split("\t")) for line in done.stdout.splitlines())
    return {(row.table, row.name): row for row in rows}


TABLES = {
    "broker": {
        name: row
        for name, row in PROPERTIES.items()
        if not name.startswith("kafkacompat.")
        and name not in ZOOKEEPER_PROPERTIES | AUTHORIZER_PROPERTIES
        and "throttled.rate" not in name
        and "alter.log.dirs.io" not in name
    },
    "quota": {name: row for name, row in PROPERTIES.items() if "throttled.rate" in name or "alter.log.dirs.io" in name},
    "topic": {name: row for name, row in TOPIC_CONFIGS.items() if not name.startswith("kafkacompat.")},
    "group": GROUP_CONFIGS,
    "client-metrics": CLIENT_METRICS_CONFIGS,
}


@pytest.mark.parametrize("table", sorted(TABLES))
def test_names(table: str) -> None:
    assert set(TABLES[table]) == {name for of, name in read_facts() if of == table}


@pytest.mark.parametrize("table", sorted(TABLES))
def test_types_and_defaults(table: str) -> None:
    for name, row in TABLES[table].items():
        fact = read_facts()[table, name]
        default = {"\\N": None, "\\R": None}.get(fact.default, fact.default)
        expected = OWN_DEFAULTS.get(name, default) if table == "broker" else default
        assert (row.kind, row.default) == (fact.kind, expected), name


@pytest.mark.parametrize("table", ["broker", "quota"])
def test_properties_are_dynamic_where_kafkas_are(table: str) -> None:
    for name, row in TABLES[table].items():
        mode = read_facts()[table, name].mode
        assert (row.dynamic, row.per_broker) == (mode != "", mode == "per-broker"), name


def test_which_are_internal() -> None:
    for table in ("broker", "topic"):
        for name, row in TABLES[table].items():
            assert row.internal == (read_facts()[table, name].internal == "internal"), name


@pytest.mark.parametrize("table", sorted(TABLES))
def test_values_that_are_taken(table: str) -> None:
    for name, row in TABLES[table].items():
        if row.kind == "class":
            continue  # Kafka looks for the class
        expected = {SAMPLES[int(index)] for index in read_facts()[table, name].taken.split()}
        assert {text for text in SAMPLES if accepts_value(row, text)} == expected | MORE_TAKEN.get(name, set()), name


def accepts_value(row: Property, text: str) -> bool:
    try:
        row.parse(text)
    except ConfigError:
        return False
    return True
