"""Where this broker answers otherwise than Apache Kafka, and why."""

from __future__ import annotations

ALLOWED_DIFFERENCES: dict[str, str] = {}
"""By the label of a scenario."""
