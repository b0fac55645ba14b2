"""AddRaftVoter (key 80): add a controller to the voters of the metadata log (KIP-853)."""

from __future__ import annotations

from kafkacompat.wire.entities import BROKER, CLUSTER, TEXT
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int16, int32, string, uint16, uuid


class Listener(Struct):
    """An address of the new voter."""

    name: str = string()
    host: str = string()
    port: int = uint16()


class AddRaftVoterRequest(Request, api_key=80, versions="0-1", flexible="0+"):
    """Add the given controller to the voters."""

    cluster_id: str | None = string(nullable="0+", entity=CLUSTER)  # null: the receiver does not check it
    timeout_ms: int = int32()
    voter_id: int = int32(entity=BROKER)  # the node id of the voter
    voter_directory_id: bytes = uuid()  # the directory id of its metadata log
    listeners: list[Listener] = array(Listener)
    # true: the leader responds after a majority stores the change; false: after the leader itself stores it
    ack_when_committed: bool = boolean(versions="1+", default=True)


class AddRaftVoterResponse(Response, api_key=80, versions="0-1", flexible="0+"):
    """The outcome of adding the voter."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", entity=TEXT)
