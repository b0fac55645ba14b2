"""StreamsGroupDescribe (key 89): the topology, members and tasks of groups of Kafka Streams (KIP-1071)."""

from __future__ import annotations

from kafkacompat.wire.entities import GROUP, TEXT, TOPIC
from kafkacompat.wire.primitives import MIN_INT32
from kafkacompat.wire.schema import (
    Request,
    Response,
    Struct,
    array,
    boolean,
    int16,
    int32,
    int64,
    string,
    struct,
    uint16,
)


class StreamsGroupDescribeRequest(Request, api_key=89, versions="0", flexible="0+"):
    """Describe the given groups."""

    group_ids: list[str] = array(string(entity=GROUP))
    # adds the operations that the client may perform on each group (KIP-430)
    include_authorized_operations: bool = boolean()


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


class Subtopology(Struct):
    """A part of the application that runs independently of the others."""

    subtopology_id: str = string()  # derived from the topology, so that all members have the same id
    source_topics: list[str] = array(string(entity=TOPIC))  # topics that it reads
    repartition_sink_topics: list[str] = array(string(entity=TOPIC))  # topics that it writes for other subtopologies
    state_changelog_topics: list[TopicInfo] = array(TopicInfo)  # the changelogs of its stores
    repartition_source_topics: list[TopicInfo] = array(TopicInfo)  # topics that other subtopologies write for it


class Topology(Struct):
    """The topology of the application."""

    epoch: int = int32()  # the epoch of the topology; differs after a change of the application
    subtopologies: list[Subtopology] | None = array(Subtopology, nullable="0+", default=None)  # null if not yet known


class Endpoint(Struct):
    """An address that the application reports."""

    host: str = string()
    port: int = uint16()


class TaskOffset(Struct):
    """The progress of one task."""

    subtopology_id: str = string()
    partition: int = int32()
    offset: int = int64()  # the sum over its changelogs


class TaskIds(Struct):
    """Tasks of one subtopology, one for each given partition."""

    subtopology_id: str = string()
    partitions: list[int] = array(int32())


class Assignment(Struct):
    """The current or the target assignment of a member."""

    active_tasks: list[TaskIds] = array(TaskIds)  # tasks that it runs
    standby_tasks: list[TaskIds] = array(TaskIds)  # tasks whose state it replicates
    warmup_tasks: list[TaskIds] = array(TaskIds)  # tasks whose state it restores, in order to run them later


class Member(Struct):
    """One member of a group."""

    member_id: str = string()
    member_epoch: int = int32()  # the epoch of its current assignment
    instance_id: str | None = string(nullable="0+", default=None)  # the group_instance_id of the member
    rack_id: str | None = string(nullable="0+", default=None)  # null if not reported
    client_id: str = string()  # the client id that the member reports
    client_host: str = string()  # the address that the member connects from
    topology_epoch: int = int32()  # the epoch of the topology that it runs
    process_id: str = string()  # the id of the application process, which may have several members
    # the address for queries to its stores; null if there is none
    user_endpoint: Endpoint | None = struct(Endpoint, nullable="0+")
    client_tags: list[KeyValue] = array(KeyValue)  # tags for a rack-aware assignor
    task_offsets: list[TaskOffset] = array(TaskOffset)  # the positions of its stores
    task_end_offsets: list[TaskOffset] = array(TaskOffset)  # the end offsets of the changelogs of its stores
    assignment: Assignment = struct(Assignment)  # the current assignment
    target_assignment: Assignment = struct(Assignment)  # the assignment once other members have revoked its partitions
    is_classic: bool = boolean()  # the member uses the classic protocol


class DescribedGroup(Struct):
    """One group."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None, entity=TEXT)
    group_id: str = string(entity=GROUP)
    group_state: str = string()  # Empty, NotReady, Assigning, Reconciling, Stable or Dead
    group_epoch: int = int32()  # raised with each change of members or topics
    assignment_epoch: int = int32()  # the group_epoch of the target assignment
    topology: Topology | None = struct(Topology, nullable="0+")  # null if there is none yet
    members: list[Member] = array(Member)
    # a bit for each AclOperation code; the default if the client did not request it
    authorized_operations: int = int32(default=MIN_INT32)


class StreamsGroupDescribeResponse(Response, api_key=89, versions="0", flexible="0+"):
    """The descriptions of the groups."""

    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array(DescribedGroup)
