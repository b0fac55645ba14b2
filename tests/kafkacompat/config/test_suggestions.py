"""Unknown names are answered with the nearest known one."""

from __future__ import annotations

import pytest

from kafkacompat.config import PROPERTIES, TOPIC_CONFIGS
from kafkacompat.config.suggestions import did_you_mean


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("num.partition", " (did you mean num.partitions?)"),
        ("log.retention.msec", " (did you mean log.retention.ms?)"),
        ("max.message.bytes", " (did you mean message.max.bytes?)"),
        ("my.own.setting", ""),
    ],
)
def test_suggestions_for_a_broker(name: str, suggestion: str) -> None:
    assert did_you_mean(name, PROPERTIES) == suggestion


def test_a_suggestion_is_among_the_known_names() -> None:
    assert did_you_mean("retention.mss", TOPIC_CONFIGS) == " (did you mean retention.ms?)"
    assert did_you_mean("cleanup.policy", ["cleanup.policies"]) == " (did you mean cleanup.policies?)"
