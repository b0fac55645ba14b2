"""RemoveRaftVoter (key 81): remove a controller from the voters of the metadata log (KIP-853)."""

from __future__ import annotations

from kafkacompat.wire.entities import BROKER, CLUSTER, TEXT
from kafkacompat.wire.schema import Request, Response, int16, int32, string, uuid


class RemoveRaftVoterRequest(Request, api_key=81, versions="0", flexible="0+"):
    """Remove the given controller from the voters."""

    cluster_id: str | None = string(nullable="0+", entity=CLUSTER)  # null: the receiver does not check it
    voter_id: int = int32(entity=BROKER)  # the node id of the voter
    voter_directory_id: bytes = uuid()  # the directory id of its metadata log


class RemoveRaftVoterResponse(Response, api_key=81, versions="0", flexible="0+"):
    """The outcome of removing the voter."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", entity=TEXT)
