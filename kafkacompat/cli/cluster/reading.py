"""Reads the state of any Kafka cluster by requests alone.

The lag of a replica is the distance of its log's end from that of its leader. ListOffsets with the replica id -2, which Kafka
calls the debugging consumer, returns the end of a log itself: that of a follower too, and beyond the high watermark. The leaders
are asked after the followers. While clients write, the lag therefore includes the records of the time in between; it is never
too small.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

from kafkacompat.cli.requests import NoResponseError
from kafkacompat.wire.apis.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kafkacompat.wire.apis.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from kafkacompat.wire.apis.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from kafkacompat.wire.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kafkacompat.wire.apis.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataResponse
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.schema import Request, Response

DEBUGGING_REPLICA_ID = -2
LATEST = -1
MOST_PARTITIONS_A_REQUEST = 5000
NO_NODE = -1
CLUSTER_METADATA_TOPIC = "__cluster_metadata"

ResponseType = TypeVar("ResponseType", bound=Response)


class PartitionName(NamedTuple):
    """A partition."""

    topic: str
    partition: int


class Connection(Protocol):
    """What is needed of a connection; `kafkacompat.cli.requests.BlockingConnection` has it."""

    def find_version(self, request: type[Request]) -> int | None: ...
    def request(self, request: Request, response: type[ResponseType]) -> ResponseType: ...
    def close(self) -> None: ...


Connect = Callable[[str, int], Connection]


@dataclass
class BrokerDescription:
    """One broker; ``problem`` says why it did not answer, ``size_bytes`` is None then."""

    node_id: int
    host: str = ""
    port: int = 0
    rack: str | None = None
    is_registered: bool = True
    is_fenced: bool = False
    size_bytes: int | None = None
    failed_log_dirs: list[str] = field(default_factory=list)
    problem: str = ""


@dataclass
class PartitionDescription:
    """One partition; ``lags`` holds the records that each follower's log lacks, None where a log's end is unknown."""

    name: PartitionName
    leader: int
    leader_epoch: int
    replicas: Sequence[int]
    isr: Sequence[int]
    adding: Sequence[int] = ()
    lags: dict[int, int | None] = field(default_factory=dict)

    @property
    def is_offline(self) -> bool:
        """Whether no broker leads the partition."""
        return self.leader == NO_NODE

    @property
    def is_under_replicated(self) -> bool:
        """Whether in-sync replicas are missing; as in Kafka's tools, replicas that a reassignment adds do not count."""
        return len(self.isr) < len(self.replicas) - len(self.adding)


@dataclass
class ClusterDescription:
    """A cluster as its brokers describe it."""

    cluster_id: str
    controller: int
    brokers: dict[int, BrokerDescription]
    partitions: list[PartitionDescription]

    @property
    def offline(self) -> list[PartitionDescription]:
        """The partitions without a leader."""
        return [partition for partition in self.partitions if partition.is_offline]

    @property
    def under_replicated(self) -> list[PartitionDescription]:
        """The partitions with fewer in-sync replicas than replicas."""
        return [partition for partition in self.partitions if partition.is_under_replicated]


def read_cluster(addresses: Iterable[tuple[str, int]], connect: Connect) -> ClusterDescription:
    """Read the cluster through the first of *addresses* that answers; raises NoResponseError if none does."""
    problems = []
    for host, port in addresses:
        try:
            connection = connect(host, port)
        except NoResponseError as problem:
            problems.append(f"{host}:{port}: {problem}")
            continue
        try:
            return _ClusterReader(connection, connect).read()
        except NoResponseError as problem:
            problems.append(f"{host}:{port}: {problem}")
        finally:
            connection.close()
    raise NoResponseError("; ".join(problems))


class _ClusterReader:
    """Reads a cluster once; ``bootstrap`` is the connection that the cluster is found by."""

    def __init__(self, bootstrap: Connection, connect: Connect) -> None:
        self._bootstrap = bootstrap
        self._connect = connect
        self._connections: dict[int, Connection] = {}

    def read(self) -> ClusterDescription:
        metadata = self._bootstrap.request(
            MetadataRequest(topics=None, allow_auto_topic_creation=False), MetadataResponse
        )
        partitions = list(_list_partitions(metadata))
        brokers = self._list_brokers(metadata, partitions)
        try:
            self._open_connections(brokers)
            self._read_reassignments(metadata.controller_id, partitions)
            self._read_log_dirs(brokers)
            self._read_lags(partitions)
            controller = self._find_controller(metadata)
        finally:
            for connection in self._connections.values():
                connection.close()
        return ClusterDescription(metadata.cluster_id or "", controller, brokers, partitions)

    def _list_brokers(
        self, metadata: MetadataResponse, partitions: Iterable[PartitionDescription]
    ) -> dict[int, BrokerDescription]:
        """Return the registered brokers, the fenced ones among them, and those that only lists of replicas name."""
        brokers = {
            broker.node_id: BrokerDescription(broker.node_id, broker.host, broker.port, broker.rack)
            for broker in metadata.brokers
        }
        for fenced in self._list_fenced_brokers(brokers):
            brokers[fenced.node_id] = fenced
        for partition in partitions:
            for node_id in partition.replicas:
                if node_id not in brokers:
                    brokers[node_id] = BrokerDescription(node_id, is_registered=False, problem="it is not registered")
        return dict(sorted(brokers.items()))

    def _list_fenced_brokers(self, live: Mapping[int, BrokerDescription]) -> list[BrokerDescription]:
        """Return the brokers that are registered with a KRaft controller and not live (KIP-1073)."""
        version = self._bootstrap.find_version(DescribeClusterRequest)
        if version is None or version < 2:
            return []
        described = self._bootstrap.request(
            DescribeClusterRequest(include_fenced_brokers=True), DescribeClusterResponse
        )
        return [
            BrokerDescription(
                broker.broker_id, broker.host, broker.port, broker.rack, is_fenced=True, problem="it is fenced"
            )
            for broker in described.brokers
            if broker.is_fenced and broker.broker_id not in live
        ]

    def _open_connections(self, brokers: Mapping[int, BrokerDescription]) -> None:
        for broker in brokers.values():
            if broker.problem:
                continue
            try:
                self._connections[broker.node_id] = self._connect(broker.host, broker.port)
            except NoResponseError as problem:
                broker.problem = str(problem)

    def _find_controller(self, metadata: MetadataResponse) -> int:
        """Return the active controller, or -1.

        With KRaft controllers Metadata names any broker as the controller (KIP-590), and DescribeQuorum the right one.
        """
        if self._bootstrap.find_version(DescribeQuorumRequest) is None:
            return metadata.controller_id
        wanted = TopicData(topic_name=CLUSTER_METADATA_TOPIC, partitions=[PartitionData(partition_index=0)])
        quorum = self._bootstrap.request(DescribeQuorumRequest(topics=[wanted]), DescribeQuorumResponse)
        leaders = [
            partition.leader_id
            for topic in quorum.topics
            for partition in topic.partitions
            if partition.error_code == ErrorCode.NONE
        ]
        return leaders[0] if leaders and not quorum.error_code else metadata.controller_id

    def _read_reassignments(self, controller: int, partitions: Iterable[PartitionDescription]) -> None:
        """Note the replicas that reassignments add; without an answer of the controller there are none."""
        connection = self._connections.get(controller)
        if connection is None or connection.find_version(ListPartitionReassignmentsRequest) is None:
            return
        try:
            response = connection.request(ListPartitionReassignmentsRequest(), ListPartitionReassignmentsResponse)
        except NoResponseError:
            return
        adding = {
            PartitionName(topic.name, partition.partition_index): partition.adding_replicas
            for topic in response.topics
            for partition in topic.partitions
        }
        for partition in partitions:
            partition.adding = adding.get(partition.name, ())

    def _read_log_dirs(self, brokers: Mapping[int, BrokerDescription]) -> None:
        for node_id, connection in self._connections.items():
            if connection.find_version(DescribeLogDirsRequest) is None:
                continue
            try:
                response = connection.request(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
            except NoResponseError as problem:
                brokers[node_id].problem = str(problem)
                continue
            broker = brokers[node_id]
            broker.failed_log_dirs = [result.log_dir for result in response.results if result.error_code]
            if not response.error_code:
                broker.size_bytes = sum(
                    partition.partition_size
                    for result in response.results
                    for topic in result.topics
                    for partition in topic.partitions
                )

    def _read_lags(self, partitions: Sequence[PartitionDescription]) -> None:
        followed: dict[int, list[PartitionName]] = defaultdict(list)
        led: dict[int, list[PartitionName]] = defaultdict(list)
        for partition in partitions:
            led[partition.leader].append(partition.name)
            for node_id in partition.replicas:
                if node_id != partition.leader:
                    followed[node_id].append(partition.name)
        follower_ends = {node_id: self._read_ends(node_id, names) for node_id, names in followed.items()}
        leader_ends = {node_id: self._read_ends(node_id, names) for node_id, names in led.items()}
        for partition in partitions:
            end = leader_ends[partition.leader].get(partition.name)
            for node_id in partition.replicas:
                if node_id != partition.leader:
                    follower_end = follower_ends[node_id].get(partition.name)
                    # A follower that has yet to truncate its log may be beyond its leader.
                    is_known = end is not None and follower_end is not None
                    partition.lags[node_id] = max(end - follower_end, 0) if is_known else None  # type: ignore[operator]

    def _read_ends(self, node_id: int, names: Sequence[PartitionName]) -> dict[PartitionName, int]:
        """Return the ends of the logs that the broker answers for."""
        connection = self._connections.get(node_id)
        ends: dict[PartitionName, int] = {}
        if connection is None:
            return ends
        for start in range(0, len(names), MOST_PARTITIONS_A_REQUEST):
            request = _build_request_for_ends(names[start : start + MOST_PARTITIONS_A_REQUEST])
            try:
                response = connection.request(request, ListOffsetsResponse)
            except NoResponseError:
                break
            ends.update(_list_ends(response))
        return ends


def _list_partitions(metadata: MetadataResponse) -> Iterator[PartitionDescription]:
    topics = sorted(metadata.topics, key=lambda topic: topic.name or "")
    for topic in topics:
        for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index):
            yield PartitionDescription(
                PartitionName(topic.name or "", partition.partition_index),
                partition.leader_id,
                partition.leader_epoch,
                partition.replica_nodes,
                partition.isr_nodes,
            )


def _build_request_for_ends(names: Iterable[PartitionName]) -> ListOffsetsRequest:
    partitions: dict[str, list[ListOffsetsPartition]] = defaultdict(list)
    for name in names:
        partitions[name.topic].append(ListOffsetsPartition(partition_index=name.partition, timestamp=LATEST))
    topics = [ListOffsetsTopic(name=topic, partitions=wanted) for topic, wanted in partitions.items()]
    return ListOffsetsRequest(replica_id=DEBUGGING_REPLICA_ID, topics=topics)


def _list_ends(response: ListOffsetsResponse) -> Iterator[tuple[PartitionName, int]]:
    for topic in response.topics:
        for partition in topic.partitions:
            # Version 0 lists offsets, the newest first.
            offsets = [partition.offset, *partition.old_style_offsets]
            if not partition.error_code and max(offsets) >= 0:
                yield PartitionName(topic.name, partition.partition_index), max(offsets)
