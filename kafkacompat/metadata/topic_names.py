"""Which names a topic may have, and which topics are the broker's own."""

from __future__ import annotations

import re

from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import uuid_text

MAX_NAME_LENGTH = 249
CLUSTER_METADATA_TOPIC = "__cluster_metadata"
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def is_internal(name: str) -> bool:
    """Whether clients are told that a topic belongs to the brokers."""
    return name in INTERNAL_TOPICS


def check_topic_name(name: str) -> None:
    """Raise KafkaError INVALID_TOPIC_EXCEPTION for a name that no topic may have."""
    if reason := _objection(name):
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def error_of_missing(name: str) -> ErrorCode:
    """What a client is told of a topic that is not there: INVALID_TOPIC_EXCEPTION where there can be none of that name."""
    return ErrorCode.INVALID_TOPIC_EXCEPTION if _objection(name) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _objection(name: str) -> str | None:
    if not name:
        return "it is empty"
    if name in (".", ".."):
        return f"'{name}' is the name of a directory"
    if len(name) > MAX_NAME_LENGTH:
        return f"it has {len(name)} characters, more than {MAX_NAME_LENGTH}"
    if not _LEGAL.fullmatch(name):
        return f"'{name}' has other characters than ASCII letters, digits, '.', '_' and '-'"
    return None


def topic_text(topic: str | bytes) -> str:
    """How people are told of a topic: its name, or its id as Kafka writes it where it was asked for by that."""
    return topic if isinstance(topic, str) else uuid_text(topic)


def unify(name: str) -> str:
    """The name in Kafka's metrics, which do not tell '.' from '_': no two topics may share it."""
    return name.replace(".", "_")
