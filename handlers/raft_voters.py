"""The answer to changes of the quorum's voters: AddRaftVoter and RemoveRaftVoter."""

from __future__ import annotations

from kafkacompat.handlers.context import Services
from kafkacompat.wire.errors import ErrorCode, KafkaError


def build_refusal(cluster_id: str | None, services: Services) -> KafkaError:
    """Return the error; Kafka returns the same code if its voters are a fixed list."""
    ours = services.metadata.image.cluster_id
    if cluster_id not in (None, ours):
        return KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID, f"this cluster has the id {ours}, not {cluster_id}")
    reason = "this node keeps the metadata alone; there is no Raft quorum that voters could join or leave"
    return KafkaError(ErrorCode.UNSUPPORTED_VERSION, reason)
