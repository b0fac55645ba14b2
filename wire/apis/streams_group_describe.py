"""StreamsGroupDescribe (key 89): the topology, members and tasks of groups of Kafka Streams (KIP-1071)."""

from __future__ import annotations

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

    group_ids: list[str] = array(string())
    # adds the operations that the client may perform on each group (KIP-430)
    include_authorized_operations: bool = boolean()


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


class Subtopology(Struct):
    """A part of the application that can run by itself."""

    subtopology_id: str = string()  # the same in all members, as it is made from the topology
    source_topics: list[str] = array(string())  # what it reads
    repartition_sink_topics: list[str] = array(string())  # what it writes for other subtopologies
    state_changelog_topics: list[TopicInfo] = array(TopicInfo)  # what it keeps its stores in
    repartition_source_topics: list[TopicInfo] = array(TopicInfo)  # what it reads from others


class Topology(Struct):
    """All that the application does."""

    epoch: int = int32()  # of the topology; differs when the application was changed
    subtopologies: list[Subtopology] | None = array(Subtopology, nullable="0+", default=None)  # null: not known yet


class Endpoint(Struct):
    """An address that the application gave."""

    host: str = string()
    port: int = uint16()


class TaskOffset(Struct):
    """How far one task is."""

    subtopology_id: str = string()
    partition: int = int32()
    offset: int = int64()  # summed over its changelogs


class TaskIds(Struct):
    """Tasks of one subtopology, one for each of these partitions."""

    subtopology_id: str = string()
    partitions: list[int] = array(int32())


class Assignment(Struct):
    """All that a member runs, or is to run."""

    active_tasks: list[TaskIds] = array(TaskIds)  # those it runs
    standby_tasks: list[TaskIds] = array(TaskIds)  # those it keeps a copy of the state of
    warmup_tasks: list[TaskIds] = array(TaskIds)  # those whose state it gets ready, to run them later


class Member(Struct):
    """One member of a group."""

    member_id: str = string()
    member_epoch: int = int32()  # the epoch of its current assignment
    instance_id: str | None = string(nullable="0+", default=None)  # the group_instance_id of the member
    rack_id: str | None = string(nullable="0+", default=None)  # null if not reported
    client_id: str = string()  # the client id that the member reports
    client_host: str = string()  # the address that the member connects from
    topology_epoch: int = int32()  # of the topology that it runs
    process_id: str = string()  # of the application's process, which may have many members
    user_endpoint: Endpoint | None = struct(Endpoint, nullable="0+")  # where its stores can be asked; null: nowhere
    client_tags: list[KeyValue] = array(KeyValue)  # for an assignor that looks at racks
    task_offsets: list[TaskOffset] = array(TaskOffset)  # how far its stores are
    task_end_offsets: list[TaskOffset] = array(TaskOffset)  # how far they could be
    assignment: Assignment = struct(Assignment)  # the current assignment
    target_assignment: Assignment = struct(Assignment)  # the assignment once other members have revoked its partitions
    is_classic: bool = boolean()  # of the classic protocol


class DescribedGroup(Struct):
    """One group."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    group_id: str = string()
    group_state: str = string()  # Empty, NotReady, Assigning, Reconciling, Stable or Dead
    group_epoch: int = int32()  # raised with each change of members or topics
    assignment_epoch: int = int32()  # the group_epoch of the target assignment
    topology: Topology | None = struct(Topology, nullable="0+")  # null: none yet
    members: list[Member] = array(Member)
    # a bit for each AclOperation code; the default if the client did not request it
    authorized_operations: int = int32(default=MIN_INT32)


class StreamsGroupDescribeResponse(Response, api_key=89, versions="0", flexible="0+"):
    """The descriptions of the groups."""

    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array(DescribedGroup)
