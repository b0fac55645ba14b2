"""UpdateRaftVoter (key 82): a voter reports its addresses and supported versions to the leader (KIP-853)."""

from __future__ import annotations

from kafkacompat.wire.entities import BROKER, CLUSTER
from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, string, struct, uint16, uuid


class Listener(Struct):
    """An address of the voter."""

    name: str = string()
    host: str = string()
    port: int = uint16()


class KRaftVersionFeature(Struct):
    """The levels of kraft.version that the voter supports."""

    min_supported_version: int = int16()
    max_supported_version: int = int16()


class UpdateRaftVoterRequest(Request, api_key=82, versions="0", flexible="0+"):
    """Update the registered addresses and versions of the voter."""

    cluster_id: str | None = string(nullable="0+", entity=CLUSTER)  # null: the receiver does not check it
    current_leader_epoch: int = int32()  # -1: the receiver does not check it
    voter_id: int = int32(entity=BROKER)  # the node id of the voter
    voter_directory_id: bytes = uuid()  # the directory id of its metadata log
    listeners: list[Listener] = array(Listener)
    k_raft_version_feature: KRaftVersionFeature = struct(KRaftVersionFeature)


class CurrentLeader(Struct):
    """The current leader of the quorum and its address."""

    leader_id: int = int32(default=-1, entity=BROKER)  # -1 if unknown
    leader_epoch: int = int32(default=-1)
    host: str = string()
    port: int = int32()


class UpdateRaftVoterResponse(Response, api_key=82, versions="0", flexible="0+"):
    """The outcome of the update."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    current_leader: CurrentLeader = struct(CurrentLeader, tag=0)
