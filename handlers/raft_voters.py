"""What changes of the quorum's voters are answered, AddRaftVoter and RemoveRaftVoter alike."""

from __future__ import annotations

from kafkacompat.handlers.context import Services
from kafkacompat.wire.errors import ErrorCode, KafkaError


def refusal(cluster_id: str | None, services: Services) -> KafkaError:
    """Why the voters stay as they are; Kafka gives the same code where the voters are a fixed list."""
    ours = services.metadata.image.cluster_id
    if cluster_id not in (None, ours):
        return KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID, f"this cluster has the id {ours}, not {cluster_id}")
    reason = "the metadata is kept by this node alone: there is no Raft quorum that voters could join or leave"
    return KafkaError(ErrorCode.UNSUPPORTED_VERSION, reason)
