"""Valid names of topics, and the names of the brokers' internal topics."""

from __future__ import annotations

import re

from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import format_uuid

MAX_NAME_LENGTH = 249
CLUSTER_METADATA_TOPIC = "__cluster_metadata"
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def is_internal(name: str) -> bool:
    """Return whether a topic belongs to the brokers, which Metadata responses tell clients."""
    return name in INTERNAL_TOPICS


def is_legal_name(name: str) -> bool:
    """Return whether a topic may have this name."""
    return _find_objection(name) is None


def check_topic_name(name: str) -> None:
    """Raise KafkaError INVALID_TOPIC_EXCEPTION for a name that no topic may have."""
    if reason := _find_objection(name):
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def missing_topic_error(name: str) -> ErrorCode:
    """Return the error code for a missing topic: INVALID_TOPIC_EXCEPTION where no topic may have that name."""
    return ErrorCode.INVALID_TOPIC_EXCEPTION if _find_objection(name) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _find_objection(name: str) -> str | None:
    if not name:
        return "it is empty"
    if name in (".", ".."):
        return f"'{name}' is the name of a directory"
    if len(name) > MAX_NAME_LENGTH:
        return f"it has {len(name)} characters, more than {MAX_NAME_LENGTH}"
    if not _LEGAL.fullmatch(name):
        return f"'{name}' has other characters than ASCII letters, digits, '.', '_' and '-'"
    return None


def format_topic(topic: str | bytes) -> str:
    """Write a topic as the request named it: by its name, or by its id in Kafka's form."""
    return topic if isinstance(topic, str) else format_uuid(topic)


def unify_name(name: str) -> str:
    """Return the topic's name in Kafka's metrics, where '.' and '_' are the same: no two topics may share it."""
    return name.replace(".", "_")
