"""Names of properties that releases of Apache Kafka before 4.0 had: what stands for them, or what replaced them."""

from __future__ import annotations

from collections.abc import Mapping

from kafkacompat.config.listeners import MAX_PORT
from kafkacompat.config.properties import ConfigError

DEFAULT_PORT = "9092"
BOUND_NAMES = ("host.name", "port")
ADVERTISED_NAMES = ("advertised.host.name", "advertised.port")

_NO_CSV = "metrics are not written to CSV files any more; kafkacompat cluster status shows lags and leaders"

GONE_NAMES: Mapping[str, str] = {
    "host.name": "listeners replaces it",
    "port": "listeners replaces it",
    "advertised.host.name": "advertised.listeners replaces it",
    "advertised.port": "advertised.listeners replaces it",
    "replica.lag.max.messages": "replica.lag.time.max.ms replaces it: a replica is late by time, not by records",
    "kafka.csv.metrics.dir": _NO_CSV,
    "kafka.csv.metrics.reporter.enabled": _NO_CSV,
    "log.cleanup.interval.mins": "log.retention.check.interval.ms replaces it",
    "log.delete.delay.ms": "log.segment.delete.delay.ms replaces it",
    "log.default.flush.interval.ms": "log.flush.interval.ms replaces it",
    "log.default.flush.scheduler.interval.ms": "log.flush.scheduler.interval.ms replaces it",
    "log.flush.interval.ms.per.topic": "the topic config flush.ms replaces it",
    "log.flush.intervals.ms.per.topic": "the topic config flush.ms replaces it",
    "log.retention.bytes.per.topic": "the topic config retention.bytes replaces it",
    "log.retention.hours.per.topic": "the topic config retention.ms replaces it",
    "log.roll.hours.per.topic": "the topic config segment.ms replaces it",
    "log.segment.bytes.per.topic": "the topic config segment.bytes replaces it",
    "quota.consumer.default": "kafka-configs sets consumer_byte_rate for clients instead",
    "quota.producer.default": "kafka-configs sets producer_byte_rate for clients instead",
    "zookeeper.sync.time.ms": "nothing replaces it",
}
"""Names that no broker has any more, with the end of the sentence that says so."""


def translate_addresses(given: Mapping[str, str]) -> dict[str, str]:
    """Return the properties with listeners and advertised.listeners for the names of addresses of Kafka up to 2.8.

    As there, listeners wins over host.name and port, and advertised.listeners over advertised.host.name and advertised.port. An
    advertised host or port alone is completed by the one to bind. Raises ConfigError for a port that is none.
    """
    translated = dict(given)
    bound = _read_address(given, *BOUND_NAMES)
    advertised = _read_address(given, *ADVERTISED_NAMES)
    if "listeners" not in given and any(bound):
        translated["listeners"] = _format_listener(*bound)
        _drop_names(translated, BOUND_NAMES)
    if "advertised.listeners" not in given and any(advertised):
        translated["advertised.listeners"] = _format_listener(advertised[0] or bound[0], advertised[1] or bound[1])
        _drop_names(translated, ADVERTISED_NAMES)
    return translated


def _read_address(given: Mapping[str, str], host_name: str, port_name: str) -> tuple[str, str]:
    """Return host and port, "" for one that is not given."""
    port = given.get(port_name, "").strip()
    if port and not (port.isdecimal() and int(port) <= MAX_PORT):
        raise ConfigError(f"{port_name}={port} is not valid: it takes a whole number from 0 to {MAX_PORT}")
    return given.get(host_name, "").strip(), port


def _format_listener(host: str, port: str) -> str:
    return f"PLAINTEXT://{f'[{host}]' if ':' in host else host}:{port or DEFAULT_PORT}"


def _drop_names(given: dict[str, str], names: tuple[str, ...]) -> None:
    for name in names:
        given.pop(name, None)
