"""Failures of the demo end it with a sentence: a member that fails, an existing topic, a missing broker."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import KafkaError, KafkaException

from spark_integration.demo import consume, produce
from spark_integration.demo.flights import TOPIC, Flight
from spark_integration.errors import PipelineError


class Member:
    """A consumer that receives nothing; the second one fails at the step *fails*."""

    fails = "poll"
    made = 0

    def __init__(self, **_: Any) -> None:
        Member.made += 1
        self.is_second = Member.made == 2

    def _at(self, step: str) -> None:
        if self.is_second and step == Member.fails:
            raise OSError("the network is gone")

    def subscribe(self, *_: Any, **__: Any) -> None:
        self._at("subscribe")

    def paused(self) -> set[Any]:
        return set()

    def poll(self, timeout_ms: int) -> dict[Any, Any]:
        self._at("poll")
        return {}

    def commit(self) -> None:
        self._at("commit")

    def close(self) -> None:
        pass


@pytest.mark.parametrize("step", ["subscribe", "poll", "commit"])
def test_a_member_that_fails_ends_all(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """The other members would wait for its commit for ever."""
    monkeypatch.setattr(Member, "fails", step)
    monkeypatch.setattr(Member, "made", 0)
    monkeypatch.setattr(consume, "KafkaConsumer", Member)
    expected = 0 if step == "commit" else 1
    with pytest.raises(PipelineError, match=r"a consumer failed .*the network is gone"):
        consume.consume_flights("127.0.0.1:9", expected, lambda _: None)


class Admin:
    """Responds with a failure, or not at all."""

    failure: Exception

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def create_topics(self, *_: Any, **__: Any) -> dict[str, Future[None]]:
        created: Future[None] = Future()
        created.set_exception(self.failure)
        return {TOPIC: created}


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (KafkaException(KafkaError(KafkaError.TOPIC_ALREADY_EXISTS)), "there is a topic 'flights' already: delete it"),
        (KafkaException(KafkaError(KafkaError._TRANSPORT)), "did not create the topic 'flights'"),
        (TimeoutError(), "did not create the topic 'flights' (no answer): is a broker running?"),
    ],
)
def test_no_topic(monkeypatch: pytest.MonkeyPatch, failure: Exception, message: str) -> None:
    monkeypatch.setattr(Admin, "failure", failure, raising=False)
    monkeypatch.setattr(produce, "AdminClient", Admin)
    monkeypatch.setattr(produce, "load_flights", list)
    done = CliRunner().invoke(produce.main, [])
    assert done.exit_code == 1
    assert done.output.startswith("Error: ")
    assert message in done.output


class Slow:
    """A producer some of whose records are never acknowledged."""

    def __init__(self, *_: Any) -> None:
        self.taken = 0

    def produce(self, *_: Any, on_delivery: Any, **__: Any) -> None:
        self.taken += 1
        if self.taken > 1:
            on_delivery(None, None)

    def poll(self, _: float) -> int:
        return 0

    def flush(self, _: float) -> int:
        return 1


def test_not_all_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(produce, "Producer", Slow)
    with pytest.raises(PipelineError, match="has not acknowledged 1 of 3 flights"):
        produce.produce_flights("127.0.0.1:9", [Flight(b"k", b"v", [])] * 3, lambda _: None)
