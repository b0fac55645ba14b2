"""Reading a push: MetricsData of OpenTelemetry, as protobuf, compressed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from math import isfinite
from typing import Any

from kafkacompat.telemetry.points import CLIENT_LABELS, MAX_LABEL_CHARACTERS, MAX_LABELS, Labels, Point, clean_label
from kafkacompat.wire.compression import decompress
from kafkacompat.wire.primitives import MalformedError

MAX_ELEMENTS = 2000
"""Metrics and values of one push that are read: some ten milliseconds."""
_END = object()
DELTA = 1
"""AGGREGATION_TEMPORALITY_DELTA."""
RESOURCE_LABELS = ("client_rack", "group_id", "transactional_id")
"""What a Java client says of itself besides its metrics."""


def load_messages() -> tuple[Any, type[Exception]]:
    """Import the messages of OpenTelemetry; return MetricsData, and the error for what is no message."""
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

    return MetricsData, DecodeError


def read_points(codec: int, data: bytes, max_bytes: int) -> tuple[list[Point], bool]:
    """Return the values of a push, with unknown kinds left out, and whether these are all: at most `MAX_ELEMENTS` are read.

    Raises TooLargeError for more than *max_bytes* when unpacked, other MalformedErrors for what cannot be read.
    """
    metrics_data, decode_error = load_messages()
    unpacked = decompress(codec, data, max_bytes)
    try:
        message = metrics_data.FromString(unpacked)
    except decode_error as problem:
        raise MalformedError(f"no MetricsData of OpenTelemetry: {problem}") from None
    elements = _walk(message)
    points = list(filter(None, islice(elements, MAX_ELEMENTS)))
    return points, next(elements, _END) is _END


def _walk(message: Any) -> Iterator[Point | None]:
    """Yield a point for each value, and None for each element without one, so that the caller can stop at any size."""
    for resource in message.resource_metrics:
        yield None
        own = _read_labels(item for item in resource.resource.attributes[:100] if item.key in RESOURCE_LABELS)
        for scope in resource.scope_metrics:
            yield None
            for metric in scope.metrics:
                yield None
                yield from _read_metric(metric, own)


def _read_metric(metric: Any, own: Labels) -> Iterator[Point | None]:
    kind = metric.WhichOneof("data")
    if kind not in ("gauge", "sum"):
        return
    data = getattr(metric, kind)
    is_counter = kind == "sum" and data.is_monotonic
    is_delta = kind == "sum" and data.aggregation_temporality == DELTA
    for point in data.data_points:
        value = getattr(point, point.WhichOneof("value") or "as_double")
        if not isfinite(value):
            yield None
            continue
        labels = dict(own) | dict(_read_labels(point.attributes[:MAX_LABELS]))
        yield Point(metric.name, tuple(sorted(labels.items())), float(value), is_counter, is_delta)


def _read_labels(attributes: Iterable[Any]) -> Labels:
    labels = {}
    for attribute in attributes:
        kind = attribute.value.WhichOneof("value")
        name = clean_label(attribute.key)
        if kind in ("string_value", "bool_value", "int_value", "double_value") and name not in CLIENT_LABELS:
            labels[name] = str(getattr(attribute.value, kind))[:MAX_LABEL_CHARACTERS]
    return tuple(labels.items())
