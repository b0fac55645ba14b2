"""Environment variables as properties."""

from __future__ import annotations

import pytest

from kafkacompat.config.environment import property_of_variable, read_environment


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("KAFKACOMPAT_LISTENERS", "listeners"),
        ("KAFKACOMPAT_LOG_RETENTION_MS", "log.retention.ms"),
        ("KAFKACOMPAT_KAFKACOMPAT_ACKS_AFTER", "kafkacompat.acks.after"),
        ("KAFKACOMPAT_A__B___C", "a_b-c"),
        ("KAFKACOMPAT_A____B", "a-.b"),
        ("KAFKACOMPAT_PORTABLE", None),
        ("KAFKACOMPAT_PLAIN_WALK", None),
        ("KAFKACOMPAT_PORT", None),
        ("KAFKACOMPAT_PORT_9092_TCP_ADDR", None),
        ("KAFKACOMPAT_SERVICE_HOST", None),
        ("KAFKACOMPAT_SERVICE_PORT_KAFKA", None),
        ("KAFKACOMPAT_", ""),
        ("KAFKA_LOG_RETENTION_MS", None),
        ("PATH", None),
    ],
)
def test_names_are_those_of_the_container_image(variable: str, name: str | None) -> None:
    assert property_of_variable(variable) == name


def test_only_properties_are_collected() -> None:
    environment = {"KAFKACOMPAT_NODE_ID": "3", "KAFKACOMPAT_PORTABLE": "1", "KAFKACOMPAT_": "x", "HOME": "/root"}
    assert read_environment(environment) == {"node.id": "3"}
