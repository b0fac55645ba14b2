"""What is kept of pushes: sums, gauges, labels, and never too much."""

from __future__ import annotations

import time

import pytest

from kafkacompat.telemetry import points as points_module
from kafkacompat.telemetry.decoding import MAX_ELEMENTS, read_points
from kafkacompat.telemetry.points import POINTS_PER_CLIENT, Point, PointStore, clean_label, clean_name
from tests.kafkacompat.telemetry.pushes import CUMULATIVE, add_gauge, add_sum, begin_push

MAX_BYTES = 1 << 20
ANNA, BERT = b"a" * 16, b"b" * 16


def list_values(store: PointStore, name: str) -> list[float]:
    return [value for _, _, value in store.list_values(name)]


def test_deltas_add_up_and_other_values_replace() -> None:
    store = PointStore(10)
    for value in (3.0, 4.0):
        message, metrics = begin_push()
        add_sum(metrics, "org.apache.kafka.producer.record.send.total", value, topic="t")
        add_sum(metrics, "bytes.total", value, CUMULATIVE)
        add_gauge(metrics, "queue.size", value)
        store.add(ANNA, read_points(0, message.SerializeToString(), MAX_BYTES)[0])
    assert dict(store) == {"producer_record_send": True, "bytes": True, "queue_size": False}
    assert list(store.list_values("producer_record_send")) == [(ANNA, (("topic", "t"),), 7.0)]
    assert list_values(store, "bytes") == [4.0]
    assert list_values(store, "queue_size") == [4.0]


def test_known_attributes_of_the_resource_become_labels() -> None:
    message, metrics = begin_push(group_id="readers", secret="no")
    add_gauge(metrics, "lag", 1.0, topic="t")
    ((point,), _) = read_points(0, message.SerializeToString(), MAX_BYTES)
    assert point.labels == (("group_id", "readers"), ("topic", "t"))


def test_a_name_has_one_kind() -> None:
    store = PointStore(10)
    store.add(ANNA, [Point("x", (), 1.0, is_counter=True), Point("x.total", (), 2.0), Point("y", (), float(3))])
    assert dict(store) == {"x": True, "y": False}
    assert store.dropped == 1


def test_clients_values_and_names_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(points_module, "MAX_NAMES", 50)
    store = PointStore(2)
    many = [Point(f"m{number}", (), 1.0) for number in range(100)]
    for client in (ANNA, BERT, b"c" * 16):
        store.add(client, many)
    kept = sum(len(list_values(store, name)) for name, _ in store)
    assert kept == 2 * POINTS_PER_CLIENT
    assert len(dict(store)) == 50
    assert store.dropped == 300 - kept
    store.keep([BERT])
    store.add(b"c" * 16, [Point("m1", (), 5.0)])
    assert list_values(store, "m1")[-1] == 5.0


def test_values_that_are_no_numbers_are_left_out() -> None:
    message, metrics = begin_push()
    for value in (float("nan"), float("inf"), 2.0):
        add_gauge(metrics, "speed", value)
    assert [point.value for point in read_points(0, message.SerializeToString(), MAX_BYTES)[0]] == [2.0]


def test_other_kinds_are_left_out() -> None:
    message, metrics = begin_push()
    metrics.add(name="h").histogram.data_points.add(count=1)
    metrics.add(name="nothing")
    assert read_points(0, message.SerializeToString(), MAX_BYTES) == ([], True)


def test_names_and_labels_are_those_of_prometheus() -> None:
    assert clean_name('org.apache.kafka.a-b.c{d="e"}\n') == "a_b_c_d__e___"
    assert [clean_label(name) for name in ("topic", "node.id", "__name__", "9", "", "é")] == [
        "topic",
        "node_id",
        "name__",
        "attribute_9",
        "attribute_",
        "attribute_",
    ]


def test_a_push_of_very_many_elements_takes_a_bounded_time() -> None:
    message, metrics = begin_push()
    for _ in range(150_000):
        metrics.add()
    data = message.SerializeToString()
    assert len(data) < MAX_BYTES
    begun_s = time.process_time()
    assert read_points(0, data, MAX_BYTES) == ([], False)
    assert time.process_time() - begun_s < 5, "a loop over all elements"
    message, metrics = begin_push()
    for number in range(10_000):
        add_gauge(metrics, f"m{number}", 1.0)
    points, is_whole = read_points(0, message.SerializeToString(), MAX_BYTES)
    assert len(points) < MAX_ELEMENTS and not is_whole
