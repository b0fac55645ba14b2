"""Clients' metrics in a scrape, in whose turns clients come, push and go."""

from __future__ import annotations

from typing import Any

from kafkacompat.monitoring.collectors.telemetry import TelemetryCollector
from kafkacompat.telemetry.points import CLIENT_LABELS
from tests.kafkacompat.telemetry.pushes import add_gauge, begin_push, make_push
from tests.kafkacompat.telemetry.test_receiver import ALL, World


def list_labels(collector: TelemetryCollector, name: str, between: Any = lambda: None) -> list[dict[str, str]]:
    """The labels of the samples of a client's metric; *between* is called in the turn before."""
    labels: list[dict[str, str]] = []
    for metric in collector.collect():
        if metric is None:
            between()
        elif metric.name == f"kafkacompat_client_{name}":
            labels += [sample.labels for sample in metric.samples]
    return labels


def test_a_client_that_comes_during_a_scrape_has_its_labels() -> None:
    world = World(**ALL)
    world.push(world.subscribe(b"1" * 16), make_push("a", "b"))
    collector = TelemetryCollector(world.telemetry)

    def come() -> None:
        client = world.subscribe(b"2" * 16)
        world.clock.advance(300)
        world.push(client, make_push("a", "b", "c"))

    calls = iter([come])
    first, second = list_labels(collector, "b", lambda: next(calls, lambda: None)())
    assert set(first) == set(second) == set(CLIENT_LABELS)
    assert first["client_id"] == second["client_id"] == "billing"


def test_a_client_that_is_forgotten_during_a_scrape_is_left_out() -> None:
    world = World(**ALL)
    world.push(world.subscribe(b"1" * 16), make_push("a", "b"))
    collector = TelemetryCollector(world.telemetry)
    assert len(list_labels(collector, "b")) == 1
    world.telemetry._clients.clear()
    world.telemetry.points.keep = lambda clients: None  # type: ignore[method-assign]
    assert list_labels(collector, "b") == []


def test_a_client_cannot_set_the_labels_that_name_it() -> None:
    world = World(**ALL)
    message, metrics = begin_push()
    add_gauge(metrics, "a", 1.0, client_id="another", zone="x")
    add_gauge(metrics, "a", 2.0, client_id="a third", zone="x")
    world.push(world.subscribe(b"1" * 16), message.SerializeToString())
    (labels,) = list_labels(TelemetryCollector(world.telemetry), "a")
    assert (labels["client_id"], labels["zone"]) == ("billing", "x")
