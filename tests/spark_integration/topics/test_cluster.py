"""The properties of Kafka's Admin client."""

from __future__ import annotations

import pytest

from spark_integration.topics.cluster import admin_properties, client_properties

SERVERS = {"kafka.bootstrap.servers": "h:1"}


def test_only_options_of_the_client_reach_it() -> None:
    assert client_properties({**SERVERS, "subscribe": "a", "kafka.client.id": "b"}) == {
        "bootstrap.servers": "h:1",
        "client.id": "b",
    }


@pytest.mark.parametrize(
    ("given", "call", "one_request"),
    [
        ({}, "15000", "10000"),
        ({"kafka.default.api.timeout.ms": "1500"}, "1500", "1500"),
        ({"kafka.default.api.timeout.ms": "90000"}, "90000", "10000"),
        ({"kafka.request.timeout.ms": "3000"}, "15000", "3000"),
    ],
)
def test_a_request_takes_no_longer_than_a_call(given: dict[str, str], call: str, one_request: str) -> None:
    """The client rejects other limits."""
    properties = admin_properties({**SERVERS, **given})
    assert (properties["default.api.timeout.ms"], properties["request.timeout.ms"]) == (call, one_request)
