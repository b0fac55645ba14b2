"""Producing records, and what is counted and reported of them."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from kafkacompat.cli.remote.options import Target
from kafkacompat.cli.remote.records import produce_run
from kafkacompat.cli.remote.records.input_records import InputError, NewRecord
from kafkacompat.cli.remote.records.produce_run import Delivery, Input, deliver, report
from kafkacompat.cli.remote.records.producing import Production, Refusals
from tests.kafkacompat.cli.remote.records.fake_client import FakeProducer


def make_production(outcomes: dict[bytes, int] | None = None, **options: Any) -> tuple[Production, FakeProducer]:
    refusals = Refusals()
    producer = FakeProducer(refusals.count_delivery, outcomes=outcomes or {}, **options)
    return Production(producer, "t", refusals), producer


def finish(production: Production, records: Iterator[NewRecord]) -> int:
    return report(production, deliver(production, records))


def test_records_pass_through_a_short_queue() -> None:
    production, producer = make_production(room=2)
    records = [NewRecord(b"%d" % number) for number in range(7)]
    records.append(NewRecord(b"v", b"k", [("h", None)], 3, 77))
    assert finish(production, iter(records)) == 0
    assert [value for value, _, _ in producer.sent] == [*(b"%d" % number for number in range(7)), b"v"]
    assert producer.sent[-1] == (b"v", b"k", {"partition": 3, "timestamp": 77, "headers": [("h", None)]})
    assert (production.acknowledged, production.refused, production.unknown) == (8, 0, 0)


def test_each_reason_of_a_refusal_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = {b"large": KafkaError.MSG_SIZE_TOO_LARGE, b"late": KafkaError._MSG_TIMED_OUT}
    production, producer = make_production(outcomes)
    producer.refused_at_once = {b"huge"}
    values = [b"good", b"large", b"late", b"huge", b"good"]
    assert finish(production, iter([NewRecord(value) for value in values])) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "kafkacompat: 2 records were refused: it is larger than the topic allows: raise max.message.bytes of the topic",
        "kafkacompat: 1 record was refused: no leader acknowledged it in time (delivery.timeout.ms): see `kafkacompat status`",
        "2 records acknowledged, 3 refused",
    ]


def test_the_producer_ends_with_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A cycle of references would leave the connections of librdkafka open until Python's next collection."""
    producers: list[weakref.ref[FakeProducer]] = []

    def create_client(_: Any, settings: dict[str, Any], __: str) -> FakeProducer:
        producer = FakeProducer(settings["on_delivery"], outcomes={})
        producers.append(weakref.ref(producer))
        return producer

    (tmp_path / "lines").write_text("1\n2\n")
    monkeypatch.setattr(produce_run, "create_client", create_client)
    monkeypatch.setattr(produce_run, "require_topic", lambda *_: None)
    cluster = SimpleNamespace(find_version=lambda _: None)
    monkeypatch.setattr(produce_run, "connect_cluster", lambda _: nullcontext(cluster))
    gc.disable()
    try:
        assert produce_run.produce(Target("kafka:9092"), "t", Input([tmp_path / "lines"]), Delivery(), {}) == 0
        assert [reference() for reference in producers] == [None]
    finally:
        gc.enable()


def test_a_bad_line_ends_the_run_after_the_lines_before(capsys: pytest.CaptureFixture[str]) -> None:
    def read() -> Iterator[NewRecord]:
        yield NewRecord(b"1")
        raise InputError("standard input, line 2, is no JSON")

    production, _ = make_production()
    assert finish(production, read()) == 1
    assert capsys.readouterr().err == "kafkacompat: standard input, line 2, is no JSON\n1 record acknowledged\n"


def test_an_interrupt_waits_for_acknowledgements(capsys: pytest.CaptureFixture[str]) -> None:
    def read() -> Iterator[NewRecord]:
        yield from (NewRecord(b"1"), NewRecord(b"2"))
        raise KeyboardInterrupt

    production, _ = make_production()
    assert finish(production, read()) == 130
    assert capsys.readouterr().err == "Interrupted: 2 records acknowledged\n"


def test_an_interrupt_says_what_was_not_acknowledged(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read() -> Iterator[NewRecord]:
        yield NewRecord(b"1")
        raise KeyboardInterrupt

    times = iter(range(100))
    monkeypatch.setattr("kafkacompat.cli.remote.records.produce_run.time.monotonic", lambda: next(times))
    production, producer = make_production()
    producer.is_stuck = True
    assert finish(production, read()) == 130
    assert capsys.readouterr().err == "Interrupted: 0 records acknowledged, 1 sent without an acknowledgement\n"


def test_an_error_that_is_none_of_librdkafka_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    production, producer = make_production()

    def fail(*_: Any, **__: Any) -> None:
        raise TypeError("no bytes")

    monkeypatch.setattr(producer, "produce", fail)
    with pytest.raises(TypeError, match="no bytes"):
        production.produce([NewRecord(b"1")])
