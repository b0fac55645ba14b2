"""RemoveRaftVoter (key 81), v0: let a controller leave the quorum (KIP-853). It is always refused: there is no quorum."""

from __future__ import annotations

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.handlers.raft_voters import build_refusal
from kafkacompat.wire.apis.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


def handle_remove_raft_voter(
    request: RemoveRaftVoterRequest, context: RequestContext, services: Services
) -> RemoveRaftVoterResponse:
    """Reject the request."""
    problem = build_refusal(request.cluster_id, services)
    return RemoveRaftVoterResponse(error_code=problem.code, error_message=problem.detail)
