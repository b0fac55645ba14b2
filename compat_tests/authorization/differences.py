"""Where this broker answers otherwise than Apache Kafka, and why."""

from __future__ import annotations

import re

_REASONS = {
    r"metadata-that-creates: all.*": "Kafka answers before the topic is there; ours waits until its leader accepts writes",
    r"describe-scram: (nothing|all but .*)": "Kafka adds a nameless result for each requested user",
    r"(add|remove)-voter: all": "there is no quorum here; Kafka finds other faults in the request first",
}
"""By the labels of scenarios, as patterns."""


def find_reason(label: str) -> str | None:
    """Return why the answers of a scenario may differ; None if they may not."""
    return next((reason for pattern, reason in _REASONS.items() if re.fullmatch(pattern, label)), None)
