"""ElectLeaders (key 43): move leadership to preferred replicas or, if unclean, to any live ones (KIP-460)."""

from __future__ import annotations

from kafkacompat.wire.entities import TEXT, TOPIC
from kafkacompat.wire.schema import Request, Response, Struct, array, int8, int16, int32, string


class TopicPartitions(Struct):
    """The partitions of one topic."""

    topic: str = string(entity=TOPIC)
    partitions: list[int] = array(int32())


class ElectLeadersRequest(Request, api_key=43, versions="0-2", flexible="2+"):
    """Elect leaders for the given partitions."""

    # 0: the first replica, if it is in sync; 1: any live replica, if none is in sync (unclean)
    election_type: int = int8(versions="1+")
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, nullable="0+")  # null: all partitions
    timeout_ms: int = int32(default=60000)


class PartitionResult(Struct):
    """The outcome for one partition."""

    partition_id: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", entity=TEXT)


class ReplicaElectionResult(Struct):
    """The outcomes for one topic."""

    topic: str = string(entity=TOPIC)
    partition_result: list[PartitionResult] = array(PartitionResult)


class ElectLeadersResponse(Response, api_key=43, versions="0-2", flexible="2+"):
    """The outcome of the elections."""

    throttle_time_ms: int = int32()
    error_code: int = int16(versions="1+")
    # if the request covers all partitions, those that needed no election are omitted
    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult)
