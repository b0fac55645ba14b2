"""Nasty topics for tests of consumers: see NastyTopics."""

from __future__ import annotations

from kafkacompat.testing.nasty.description import (
    ExpectedRecord,
    MissingOffsets,
    NastyTopic,
    NastyTopicError,
    TimeLookup,
)
from kafkacompat.testing.nasty.retention import RetentionJump
from kafkacompat.testing.nasty.topics import NastyTopics
from kafkacompat.testing.nasty.truncation import UncleanTruncation

__all__ = [
    "ExpectedRecord",
    "MissingOffsets",
    "NastyTopic",
    "NastyTopicError",
    "NastyTopics",
    "RetentionJump",
    "TimeLookup",
    "UncleanTruncation",
]
