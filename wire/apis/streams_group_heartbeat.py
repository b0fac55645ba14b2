"""StreamsGroupHeartbeat (key 88): join, stay in and leave a group of Kafka Streams (KIP-1071)."""

from __future__ import annotations

from kafkacompat.wire.entities import GROUP, TEXT, TOPIC, TOPIC_PATTERN
from kafkacompat.wire.schema import (
    Request,
    Response,
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    string,
    struct,
    uint16,
)


class KeyValue(Struct):
    """A name with its value."""

    key: str = string()
    value: str = string()


class TopicInfo(Struct):
    """An internal topic of the application."""

    name: str = string(entity=TOPIC)
    partitions: int = int32()  # the required number of partitions; 0: the number follows from other topics
    replication_factor: int = int16()  # the number of replicas; 0: the broker's default
    topic_configs: list[KeyValue] = array(KeyValue)


class CopartitionGroup(Struct):
    """Topics that must have equal numbers of partitions, given as indexes into the lists of the subtopology."""

    source_topics: list[int] = array(int16())
    source_topic_regex: list[int] = array(int16())
    repartition_source_topics: list[int] = array(int16())


class Subtopology(Struct):
    """A part of the application that runs independently of the others."""

    subtopology_id: str = string()  # derived from the topology, so that all members have the same id
    source_topics: list[str] = array(string(entity=TOPIC))  # topics that it reads
    source_topic_regex: list[str] = array(string(entity=TOPIC_PATTERN))  # patterns of topics that it reads
    state_changelog_topics: list[TopicInfo] = array(TopicInfo)  # the changelogs of its stores; the broker creates them
    repartition_sink_topics: list[str] = array(string(entity=TOPIC))  # topics that it writes for other subtopologies
    # topics that other subtopologies write for it; the broker creates them
    repartition_source_topics: list[TopicInfo] = array(TopicInfo)
    copartition_groups: list[CopartitionGroup] = array(CopartitionGroup)


class Topology(Struct):
    """The topology of the application."""

    epoch: int = int32()  # the epoch of the topology; differs after a change of the application
    subtopologies: list[Subtopology] = array(Subtopology)


class TaskIds(Struct):
    """Tasks of one subtopology, one for each given partition."""

    subtopology_id: str = string()
    partitions: list[int] = array(int32())


class Endpoint(Struct):
    """An address that the application reports."""

    host: str = string()
    port: int = uint16()


class TaskOffset(Struct):
    """The progress of one task."""

    subtopology_id: str = string()
    partition: int = int32()
    offset: int = int64()  # the sum over its changelogs


class StreamsGroupHeartbeatRequest(Request, api_key=88, versions="0", flexible="0+"):
    """Report that the member is alive, and the fields that have changed since its last heartbeat."""

    group_id: str = string(entity=GROUP)
    member_id: str = string()
    # the last epoch received; 0: joins, -1: leaves, -2: leaves as a static member that will return
    member_epoch: int = int32()
    endpoint_information_epoch: int = int32()  # the last endpoint epoch received
    instance_id: str | None = string(nullable="0+", default=None)  # the group_instance_id; null: none, or unchanged
    rack_id: str | None = string(nullable="0+", default=None)  # null: none, or unchanged
    rebalance_timeout_ms: int = int32(default=-1)  # the time that the member has to release tasks; -1: unchanged
    topology: Topology | None = struct(Topology, nullable="0+")  # set with member_epoch 0, otherwise null
    # tasks that it runs; null: unchanged
    active_tasks: list[TaskIds] | None = array(TaskIds, nullable="0+", default=None)
    # tasks whose state it replicates; null: unchanged
    standby_tasks: list[TaskIds] | None = array(TaskIds, nullable="0+", default=None)
    # tasks whose state it restores, in order to run them later; null: unchanged
    warmup_tasks: list[TaskIds] | None = array(TaskIds, nullable="0+", default=None)
    # the id of the application process, which may have several members; null: unchanged
    process_id: str | None = string(nullable="0+", default=None)
    # the address for queries to its stores; null: none, or unchanged
    user_endpoint: Endpoint | None = struct(Endpoint, nullable="0+")
    # tags for a rack-aware assignor; null: unchanged
    client_tags: list[KeyValue] | None = array(KeyValue, nullable="0+", default=None)
    # the positions of its stores; null: unchanged
    task_offsets: list[TaskOffset] | None = array(TaskOffset, nullable="0+", default=None)
    # the end offsets of the changelogs of its stores; null: unchanged
    task_end_offsets: list[TaskOffset] | None = array(TaskOffset, nullable="0+", default=None)
    shutdown_application: bool = boolean()  # requests that all members stop


class Status(Struct):
    """A condition that prevents the group from running normally."""

    # 0: old topology, 1: missing source topics, 2: differing numbers of partitions, 3: missing internal topics,
    # 4: the application is to stop, 5: the assignment is delayed
    status_code: int = int8()
    status_detail: str = string(entity=TEXT)  # a readable explanation


class TopicPartition(Struct):
    """Partitions of one topic."""

    topic: str = string(entity=TOPIC)
    partitions: list[int] = array(int32())


class EndpointToPartitions(Struct):
    """The partitions whose stores one address serves."""

    user_endpoint: Endpoint = struct(Endpoint)
    active_partitions: list[TopicPartition] = array(TopicPartition)  # partitions of the active tasks there
    standby_partitions: list[TopicPartition] = array(TopicPartition)  # partitions of the standby tasks there


class StreamsGroupHeartbeatResponse(Response, api_key=88, versions="0", flexible="0+"):
    """The next steps for the member."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None, entity=TEXT)
    member_id: str = string()
    member_epoch: int = int32()  # the epoch to send with the next heartbeat
    heartbeat_interval_ms: int = int32()  # the time until the next heartbeat
    acceptable_recovery_lag: int = int32()  # the lag in records at which a warm-up task is ready
    task_offset_interval_ms: int = int32()  # the interval between reports of task_offsets
    status: list[Status] | None = array(Status, nullable="0+")  # null if there is none
    active_tasks: list[TaskIds] | None = array(TaskIds, nullable="0+", default=None)  # tasks to run; null: unchanged
    # tasks to replicate the state of; null: unchanged
    standby_tasks: list[TaskIds] | None = array(TaskIds, nullable="0+", default=None)
    # tasks to restore the state of; null: unchanged
    warmup_tasks: list[TaskIds] | None = array(TaskIds, nullable="0+", default=None)
    endpoint_information_epoch: int = int32()  # raised with each change of the addresses
    # the partitions at each address; null: unchanged
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = array(
        EndpointToPartitions, nullable="0+", default=None
    )
