"""CreateTopics (key 19): create topics."""

from __future__ import annotations

from kafkacompat.wire.entities import BROKER, TEXT, TOPIC, TOPIC_ID
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int8, int16, int32, string, uuid


class CreatableReplicaAssignment(Struct):
    """The brokers for the replicas of one partition."""

    partition_index: int = int32()
    broker_ids: list[int] = array(int32(entity=BROKER))  # replicas in order, the preferred leader first


class CreatableTopicConfig(Struct):
    """An initial configuration entry of the topic."""

    name: str = string()
    value: str | None = string(nullable="0+")  # null is rejected; a client omits the entry instead


class CreatableTopic(Struct):
    """One topic to create."""

    name: str = string(entity=TOPIC)
    num_partitions: int = int32()  # -1: the broker's default, or the number that the assignments give
    replication_factor: int = int16()  # -1: the broker's default, or the number that the assignments give
    # empty: the controller places the replicas
    assignments: list[CreatableReplicaAssignment] = array(CreatableReplicaAssignment)
    configs: list[CreatableTopicConfig] = array(CreatableTopicConfig)


class CreateTopicsRequest(Request, api_key=19, versions="0-7", flexible="5+"):
    """Create the given topics."""

    topics: list[CreatableTopic] = array(CreatableTopic)
    timeout_ms: int = int32(default=60000)
    validate_only: bool = boolean(versions="1+")


class CreatableTopicConfigs(Struct):
    """A configuration entry of the created topic."""

    name: str = string()
    value: str | None = string(nullable="0+")  # null if the entry is sensitive
    read_only: bool = boolean()  # requests cannot change the entry
    config_source: int = int8(default=-1)  # a code, as in DescribeConfigs
    is_sensitive: bool = boolean()  # the value is a secret and is not returned


class CreatableTopicResult(Struct):
    """The outcome for one topic."""

    name: str = string(entity=TOPIC)
    topic_id: bytes = uuid(versions="7+", entity=TOPIC_ID)
    error_code: int = int16()
    error_message: str | None = string(versions="1+", nullable="0+", entity=TEXT)
    topic_config_error_code: int = int16(versions="5+", tag=0)  # the reason why configs are not returned (KIP-525)
    num_partitions: int = int32(versions="5+", default=-1)  # -1 if not returned
    replication_factor: int = int16(versions="5+", default=-1)  # -1 if not returned
    # null if not returned
    configs: list[CreatableTopicConfigs] | None = array(CreatableTopicConfigs, versions="5+", nullable="0+")


class CreateTopicsResponse(Response, api_key=19, versions="0-7", flexible="5+"):
    """The outcome for each topic."""

    throttle_time_ms: int = int32(versions="2+")
    topics: list[CreatableTopicResult] = array(CreatableTopicResult)
