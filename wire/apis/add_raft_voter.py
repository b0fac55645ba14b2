"""AddRaftVoter (key 80): take a controller into the quorum of the metadata log (KIP-853)."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int16, int32, string, uint16, uuid


class Listener(Struct):
    """An address of the new voter."""

    name: str = string()
    host: str = string()
    port: int = uint16()


class AddRaftVoterRequest(Request, api_key=80, versions="0-1", flexible="0+"):
    """Let this controller vote."""

    cluster_id: str | None = string(nullable="0+")  # null: do not check
    timeout_ms: int = int32()
    voter_id: int = int32()  # its node id
    voter_directory_id: bytes = uuid()  # of its metadata log
    listeners: list[Listener] = array(Listener)
    # answer when a majority has it, else as soon as the leader has it
    ack_when_committed: bool = boolean(versions="1+", default=True)


class AddRaftVoterResponse(Response, api_key=80, versions="0-1", flexible="0+"):
    """Whether it may vote."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
