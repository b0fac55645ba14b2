"""Why a topic is refused, with a suggestion for a name that is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacompat.cli.remote.errors import explain_refusal, suggest_name
from kafkacompat.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kafkacompat.cli.remote.cluster import RemoteCluster


def explain_topic(cluster: RemoteCluster, name: str, code: int, message: str | None = None) -> str:
    """Return why the cluster refuses a request about a topic."""
    if code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return explain_refusal(code, message)
    known = (topic.name or "" for topic in cluster.read_topics())
    return f"there is no topic {name}{suggest_name(name, known)}"
