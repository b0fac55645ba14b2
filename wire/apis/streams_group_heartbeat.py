"""StreamsGroupHeartbeat (key 88): join, stay in and leave a group of Kafka Streams (KIP-1071)."""

from __future__ import annotations

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
    """A topic that the application keeps for itself."""

    name: str = string()
    partitions: int = int32()  # how many it must have; 0: whatever the others need
    replication_factor: int = int16()  # 0: the broker's default
    topic_configs: list[KeyValue] = array(KeyValue)


class CopartitionGroup(Struct):
    """Topics that must have as many partitions as each other; numbers count within the subtopology's lists."""

    source_topics: list[int] = array(int16())
    source_topic_regex: list[int] = array(int16())
    repartition_source_topics: list[int] = array(int16())


class Subtopology(Struct):
    """A part of the application that can run by itself."""

    subtopology_id: str = string()  # the same in all members, as it is made from the topology
    source_topics: list[str] = array(string())  # what it reads
    source_topic_regex: list[str] = array(string())  # patterns of what it reads
    state_changelog_topics: list[TopicInfo] = array(TopicInfo)  # what it keeps its stores in; the broker creates them
    repartition_sink_topics: list[str] = array(string())  # what it writes for other subtopologies
    repartition_source_topics: list[TopicInfo] = array(TopicInfo)  # what it reads from others; the broker creates them
    copartition_groups: list[CopartitionGroup] = array(CopartitionGroup)


class Topology(Struct):
    """All that the application does."""

    epoch: int = int32()  # of the topology; differs when the application was changed
    subtopologies: list[Subtopology] = array(Subtopology)


class TaskIds(Struct):
    """Tasks of one subtopology, one for each of these partitions."""

    subtopology_id: str = string()
    partitions: list[int] = array(int32())


class Endpoint(Struct):
    """An address that the application gave."""

    host: str = string()
    port: int = uint16()


class TaskOffset(Struct):
    """How far one task is."""

    subtopology_id: str = string()
    partition: int = int32()
    offset: int = int64()  # summed over its changelogs


class StreamsGroupHeartbeatRequest(Request, api_key=88, versions="0", flexible="0+"):
    """I live; what has changed since my last heartbeat stands here."""

    group_id: str = string()
    member_id: str = string()
    # 0: joins, -1: leaves, -2: leaves as a static member that will be back, else the last one received
    member_epoch: int = int32()
    endpoint_information_epoch: int = int32()  # the last one received
    instance_id: str | None = string(nullable="0+", default=None)  # the group_instance_id; null: none, or unchanged
    rack_id: str | None = string(nullable="0+", default=None)  # null: none, or unchanged
    rebalance_timeout_ms: int = int32(default=-1)  # how long it may take to give tasks up; -1: as before
    topology: Topology | None = struct(Topology, nullable="0+")  # with member_epoch 0, else null
    active_tasks: list[TaskIds] | None = array(TaskIds, nullable="0+", default=None)  # those it runs; null: as before
    # those it keeps a copy of the state of; null: as before
    standby_tasks: list[TaskIds] | None = array(TaskIds, nullable="0+", default=None)
    # those whose state it gets ready, to run them later; null: as before
    warmup_tasks: list[TaskIds] | None = array(TaskIds, nullable="0+", default=None)
    # of the application's process, which may have many members; null: as before
    process_id: str | None = string(nullable="0+", default=None)
    # where its stores can be asked; null: nowhere, or as before
    user_endpoint: Endpoint | None = struct(Endpoint, nullable="0+")
    # for an assignor that looks at racks; null: as before
    client_tags: list[KeyValue] | None = array(KeyValue, nullable="0+", default=None)
    # how far its stores are; null: as before
    task_offsets: list[TaskOffset] | None = array(TaskOffset, nullable="0+", default=None)
    # how far they could be; null: as before
    task_end_offsets: list[TaskOffset] | None = array(TaskOffset, nullable="0+", default=None)
    shutdown_application: bool = boolean()  # asks all members to stop


class Status(Struct):
    """Something that keeps the group from going on as it should."""

    # 0: old topology, 1: source topics missing, 2: numbers of partitions differ, 3: internal topics missing,
    # 4: the application shall stop, 5: the assignment waits
    status_code: int = int8()
    status_detail: str = string()  # a sentence for people


class TopicPartition(Struct):
    """Partitions of one topic."""

    topic: str = string()
    partitions: list[int] = array(int32())


class EndpointToPartitions(Struct):
    """What can be asked at one address."""

    user_endpoint: Endpoint = struct(Endpoint)
    active_partitions: list[TopicPartition] = array(TopicPartition)  # of the tasks that run there
    standby_partitions: list[TopicPartition] = array(TopicPartition)  # of the tasks that are copied there


class StreamsGroupHeartbeatResponse(Response, api_key=88, versions="0", flexible="0+"):
    """The next steps for the member."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    member_id: str = string()
    member_epoch: int = int32()  # the epoch to send with the next heartbeat
    heartbeat_interval_ms: int = int32()  # the time until the next heartbeat
    acceptable_recovery_lag: int = int32()  # how many records behind a warm-up task is ready
    task_offset_interval_ms: int = int32()  # how often to tell task_offsets
    status: list[Status] | None = array(Status, nullable="0+")  # null: nothing is the matter
    active_tasks: list[TaskIds] | None = array(TaskIds, nullable="0+", default=None)  # to run; null: as before
    # to keep a copy of the state of; null: as before
    standby_tasks: list[TaskIds] | None = array(TaskIds, nullable="0+", default=None)
    warmup_tasks: list[TaskIds] | None = array(TaskIds, nullable="0+", default=None)  # to get ready; null: as before
    endpoint_information_epoch: int = int32()  # counts the changes of the addresses
    # which address has what; null: as before
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = array(
        EndpointToPartitions, nullable="0+", default=None
    )
