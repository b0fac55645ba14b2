"""Helpers of the audit's tests: they judge a topic, and name findings by their offsets."""

from __future__ import annotations

from typing import Any

from compat_tests.brokers import Broker
from spark_integration.audit.pipeline import audit
from spark_integration.audit.settings import AuditFields, AuditSettings
from spark_integration.audit.summary import AuditSummary

BY_VALUE = AuditFields("$.producer", "$.sequence")
ALL = 1_000


def source_of(broker: Broker, topic: str, **options: str) -> dict[str, str]:
    source = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic}
    return {**source, "kafka.isolation.level": "read_committed", **options}


def judge_topic(spark: Any, broker: Broker, topic: str, fields: AuditFields = BY_VALUE, **options: Any) -> AuditSummary:
    return audit(spark, source_of(broker, topic), settings=AuditSettings(fields, limit=ALL), **options)


def offsets_of(summary: AuditSummary, kind: str) -> set[tuple[int, int]]:
    """Return the (partition, offset) of the findings of a kind."""
    rows = summary.details.get(kind, [])
    return {(row["partition"], offset) for row in rows for offset in range(row["first"], row["last"] + 1)}
