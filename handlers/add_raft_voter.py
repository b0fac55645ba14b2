"""AddRaftVoter (key 80), v0-1: let a controller join the quorum (KIP-853). It is always refused: there is no quorum."""

from __future__ import annotations

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.handlers.raft_voters import build_refusal
from kafkacompat.wire.apis.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse


def handle_add_raft_voter(
    request: AddRaftVoterRequest, context: RequestContext, services: Services
) -> AddRaftVoterResponse:
    """Reject the request."""
    problem = build_refusal(request.cluster_id, services)
    return AddRaftVoterResponse(error_code=problem.code, error_message=problem.detail)
