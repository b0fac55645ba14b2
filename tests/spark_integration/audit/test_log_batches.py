"""Messages if a broker, or Kafka's client, does not return batches."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JJavaError

from spark_integration.audit.log_batches import LogBatchReader
from spark_integration.errors import PipelineError
from spark_integration.topics.offsets import TopicPartition


class Anything:
    """Stands for a JVM and a cluster: has every attribute, is of release 0.8 and at h:1."""

    bootstrap = "h:1"

    def __getattr__(self, name: str) -> Any:
        return (lambda: "0.8") if name == "getVersion" else self


class JavaError(Py4JJavaError):  # type: ignore[misc]
    """An exception of Java's with these words."""

    def __init__(self, words: str) -> None:
        self.words = words

    def __str__(self) -> str:
        return f"An error occurred while calling z:o.send.\n: {self.words}"


def fetch_with_failure(monkeypatch: pytest.MonkeyPatch, failure: Exception) -> Any:
    """Fetch with this failure as the result."""
    anything: Any = Anything()

    def fail(*_: object) -> None:
        raise failure

    monkeypatch.setattr(LogBatchReader, "_fetch", fail)
    return LogBatchReader(anything, anything, {})(TopicPartition("t", 0), 7)


def test_an_unreachable_broker_yields_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fetch_with_failure(monkeypatch, JavaError("java.io.IOException: Connection to h:1 (id: 1) failed.")) is None


def test_a_broker_that_refuses_the_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    words = "org.apache.kafka.common.errors.SaslAuthenticationException: Authentication failed"
    with pytest.raises(PipelineError, match=r"^h:1: the broker refuses the credentials \(Authentication failed\)"):
        fetch_with_failure(monkeypatch, JavaError(words))


def test_a_client_that_cannot_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    """py4j's exception for a missing method is none of Java's."""
    with pytest.raises(PipelineError, match=r"^Kafka's client 0\.8 cannot ask for batches.*give --examine 0"):
        fetch_with_failure(monkeypatch, Py4JError("org.apache.kafka.clients.X.y does not exist in the JVM"))
