"""Pushes as clients make them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

DELTA, CUMULATIVE = 1, 2


def make_attributes(labels: Mapping[str, str]) -> list[KeyValue]:
    return [KeyValue(key=name, value=AnyValue(string_value=value)) for name, value in labels.items()]


def add_gauge(metrics: Any, name: str, value: float, **labels: str) -> None:
    metric = metrics.add(name=name)
    metric.gauge.data_points.add(as_double=value, attributes=make_attributes(labels))


def add_sum(metrics: Any, name: str, value: float, temporality: int = DELTA, **labels: str) -> None:
    metric = metrics.add(name=name)
    metric.sum.is_monotonic = True
    metric.sum.aggregation_temporality = temporality
    metric.sum.data_points.add(as_double=value, attributes=make_attributes(labels))


def begin_push(**resource: str) -> tuple[MetricsData, Any]:
    """Return a message and the list of its metrics."""
    message = MetricsData()
    of = message.resource_metrics.add()
    of.resource.attributes.extend(make_attributes(resource))
    return message, of.scope_metrics.add().metrics


def make_push(*names: str, value: float = 1.0) -> bytes:
    """Return an uncompressed push with a gauge for each name."""
    message, metrics = begin_push()
    for name in names:
        add_gauge(metrics, name, value)
    data: bytes = message.SerializeToString()
    return data
