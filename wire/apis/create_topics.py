"""CreateTopics (key 19): make new topics."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int8, int16, int32, string, uuid


class CreatableReplicaAssignment(Struct):
    """The brokers that one partition shall lie on."""

    partition_index: int = int32()
    broker_ids: list[int] = array(int32())  # the preferred leader first


class CreatableTopicConfig(Struct):
    """A configuration entry the topic starts with."""

    name: str = string()
    value: str | None = string(nullable="0+")  # null: not allowed, leave the entry out


class CreatableTopic(Struct):
    """One topic to create."""

    name: str = string()
    num_partitions: int = int32()  # -1: the broker's default, or as many as are assigned
    replication_factor: int = int16()  # -1: the broker's default, or as many as are assigned
    # empty: the controller places the replicas
    assignments: list[CreatableReplicaAssignment] = array(CreatableReplicaAssignment)
    configs: list[CreatableTopicConfig] = array(CreatableTopicConfig)


class CreateTopicsRequest(Request, api_key=19, versions="0-7", flexible="5+"):
    """Create these topics."""

    topics: list[CreatableTopic] = array(CreatableTopic)
    timeout_ms: int = int32(default=60000)
    validate_only: bool = boolean(versions="1+")


class CreatableTopicConfigs(Struct):
    """A configuration entry of the topic created."""

    name: str = string()
    value: str | None = string(nullable="0+")  # null when sensitive
    read_only: bool = boolean()  # no request can change it
    config_source: int = int8(default=-1)  # as in DescribeConfigs
    is_sensitive: bool = boolean()  # a secret, whose value is not told


class CreatableTopicResult(Struct):
    """The outcome for one topic."""

    name: str = string()
    topic_id: bytes = uuid(versions="7+")
    error_code: int = int16()
    error_message: str | None = string(versions="1+", nullable="0+")
    topic_config_error_code: int = int16(versions="5+", tag=0)  # why configs are not told (KIP-525)
    num_partitions: int = int32(versions="5+", default=-1)  # -1 when not told
    replication_factor: int = int16(versions="5+", default=-1)  # -1 when not told
    # null when not told
    configs: list[CreatableTopicConfigs] | None = array(CreatableTopicConfigs, versions="5+", nullable="0+")


class CreateTopicsResponse(Response, api_key=19, versions="0-7", flexible="5+"):
    """Which topics were created."""

    throttle_time_ms: int = int32(versions="2+")
    topics: list[CreatableTopicResult] = array(CreatableTopicResult)
