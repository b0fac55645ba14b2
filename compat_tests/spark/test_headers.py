"""Keys, values and headers of records are unchanged: missing, empty, and several headers of one name."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Producer

from compat_tests.batches import RECENT_MS
from compat_tests.spark.scene import Scene, catch_failure, collect_records

pytestmark = pytest.mark.spark

# (key, value, headers)
ODD: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]] | None]] = [
    (b"key", b"value", [("one", b"1")]),
    (None, b"no key", None),
    (b"no value", None, [("twice", b"first"), ("other", None), ("twice", b"second"), ("twice", b"first")]),
    (None, None, [("", b"no name")]),
    (b"", b"", [("empty", b"")]),
    (b"\x00\xff", b"\xfe\x00", [("h\u00e9\U0001f600", b"\x00\xff")]),
]


def produce_odd_ones(scene: Scene) -> None:
    producer = Producer({"bootstrap.servers": scene.broker.bootstrap})
    for number, (key, value, headers) in enumerate(ODD):
        producer.produce(scene.topic, key=key, value=value, headers=headers, timestamp=RECENT_MS + number)
    assert producer.flush(30) == 0


# Bytes as digits; headers as one text, in their order.
IN_DIGITS = (
    "offset",
    "hex(key) as k",
    "hex(value) as v",
    "array_join(transform(headers, one -> concat(one.key, '=', coalesce(hex(one.value), 'none'))), ', ') as h",
)
COLUMNS = ("offset", "k", "v", "h")


def format_digits(part: bytes | None) -> str | None:
    return None if part is None else part.hex().upper()


def make_wanted() -> set[Any]:
    def text(headers: list[tuple[str, bytes | None]]) -> str:
        return ", ".join(f"{name}={format_digits(value) if value is not None else 'none'}" for name, value in headers)

    return {
        (offset, format_digits(key), format_digits(value), None if headers is None else text(headers))
        for offset, (key, value, headers) in enumerate(ODD)
    }


def test_a_batch_with_headers(scene: Scene) -> None:
    scene.create()
    produce_odd_ones(scene)
    frame = scene.batch(includeHeaders="true")
    assert scene.note("contents", collect_records(frame.selectExpr(*IN_DIGITS), COLUMNS)) == make_wanted()
    times = {(row.offset, row.timestampType) for row in frame.collect()}
    assert scene.note("times", times) == {(offset, 0) for offset in range(len(ODD))}
    assert scene.note("columns", scene.batch().columns) == [*frame.columns[:-1]]


def test_a_stream_with_headers(scene: Scene) -> None:
    scene.create()
    produce_odd_ones(scene)
    query = scene.run_to_the_end(scene.stream(includeHeaders="true").selectExpr(*IN_DIGITS), columns=COLUMNS)
    assert scene.note("contents", query.records()) == make_wanted()


def test_headers_through_the_sink(scene: Scene) -> None:
    """A record without headers gets none, and a record keeps a header without a value."""
    target = scene.topic + "-copy"
    scene.create()
    scene.create(1, target)
    produce_odd_ones(scene)
    ordered = scene.batch(includeHeaders="true").select("key", "value", "headers", "offset").coalesce(1).sort("offset")
    options = {"kafka.bootstrap.servers": scene.broker.bootstrap, "topic": target, "includeHeaders": "true"}
    ordered.drop("offset").write.format("kafka").options(**options).save()
    copy = scene.batch(subscribe=target, includeHeaders="true").selectExpr(*IN_DIGITS)
    assert scene.note("copy", collect_records(copy, COLUMNS)) == make_wanted()


def test_the_time_that_the_broker_gives(scene: Scene) -> None:
    scene.create(1, message_timestamp_type="LogAppendTime")
    produce_odd_ones(scene)
    rows = scene.batch().collect()
    times = {(row.offset, row.timestampType, row.timestamp.timestamp() * 1000 > RECENT_MS + 1000) for row in rows}
    assert scene.note("times", times) == {(offset, 1, True) for offset in range(len(ODD))}


def test_headers_of_another_shape_are_refused(scene: Scene) -> None:
    frame = scene.session.sql("select 'value' as value, map('a', 'b') as headers")
    writer = frame.write.format("kafka").option("kafka.bootstrap.servers", scene.broker.bootstrap)
    assert scene.note("refusal", catch_failure(writer.option("topic", scene.topic).save))[0].startswith(
        "AnalysisException"
    )
