"""Moves replicas of any Kafka cluster by requests: their start, their throttle as kafka-reassign-partitions sets it, their end.

Each request has a connection of its own, so that brokers may start again in the meantime.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TypeVar

from kafkacompat.cli.cluster.folder import ClusterCommandError
from kafkacompat.cli.cluster.reading import Connect, PartitionName
from kafkacompat.cli.cluster.spreading import ReplicaMove
from kafkacompat.cli.requests import NoResponseError
from kafkacompat.config.resources import ResourceType
from kafkacompat.wire.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from kafkacompat.wire.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kafkacompat.wire.apis.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from kafkacompat.wire.apis.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from kafkacompat.wire.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafkacompat.wire.apis.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataResponse
from kafkacompat.wire.errors import ErrorCode, describe_code
from kafkacompat.wire.schema import Request, Response

RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LEADER_REPLICAS, FOLLOWER_REPLICAS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
SET, DELETE = 0, 1
DYNAMIC_BROKER_CONFIG, TOPIC_CONFIG = 2, 1
PREFERRED = 0
PARTITIONS_A_REQUEST = 1000
_ELECTED = frozenset({ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED})

ResponseType = TypeVar("ResponseType", bound=Response)


@dataclass
class PartitionPlace:
    """Where a partition is, and where a reassignment takes it; ``replicas`` are those after the reassignment."""

    leader: int
    replicas: tuple[int, ...]
    present: tuple[int, ...]
    adding: tuple[int, ...] = ()
    is_moving: bool = False


@dataclass
class ClusterLayout:
    """The brokers that are live, with their addresses and racks, and the places of all partitions."""

    controller: int
    addresses: dict[int, tuple[str, int]] = field(default_factory=dict)
    racks: dict[int, str | None] = field(default_factory=dict)
    places: dict[PartitionName, PartitionPlace] = field(default_factory=dict)

    @property
    def assignments(self) -> dict[PartitionName, tuple[int, ...]]:
        """The replicas of each partition once all reassignments have ended."""
        return {name: place.replicas for name, place in self.places.items()}

    @property
    def ongoing(self) -> list[ReplicaMove]:
        """The reassignments that have not ended."""
        return [
            ReplicaMove(name, tuple(n for n in place.present if n not in place.adding), place.replicas)
            for name, place in self.places.items()
            if place.is_moving
        ]


class ClusterMover:
    """Requests to the brokers of one cluster, which any of *addresses* leads to."""

    def __init__(self, addresses: Sequence[tuple[str, int]], connect: Connect) -> None:
        self._bootstrap = list(addresses)
        self._connect = connect

    def read_layout(self) -> ClusterLayout:
        """Return the cluster's layout; raises NoResponseError if no broker, or no controller, answers."""
        metadata = self._request_metadata()
        layout = ClusterLayout(metadata.controller_id)
        for broker in metadata.brokers:
            layout.addresses[broker.node_id] = (broker.host, broker.port)
            layout.racks[broker.node_id] = broker.rack
        for topic in metadata.topics:
            for partition in topic.partitions:
                replicas = tuple(partition.replica_nodes)
                name = PartitionName(topic.name or "", partition.partition_index)
                layout.places[name] = PartitionPlace(partition.leader_id, replicas, replicas)
        for topic_name, index, adding, removing in self._list_reassignments(layout):
            place = layout.places.get(PartitionName(topic_name, index))
            if place is not None:
                place.replicas = tuple(node_id for node_id in place.present if node_id not in removing)
                place.adding, place.is_moving = tuple(adding), True
        return layout

    def _request_metadata(self) -> MetadataResponse:
        problems = []
        for address in self._bootstrap:
            try:
                request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
                return self._request(address, request, MetadataResponse)
            except NoResponseError as problem:
                problems.append(str(problem))
        raise NoResponseError("; ".join(problems))

    def _list_reassignments(self, layout: ClusterLayout) -> Iterator[tuple[str, int, Sequence[int], Sequence[int]]]:
        request = ListPartitionReassignmentsRequest()
        response = self._request_controller(layout, request, ListPartitionReassignmentsResponse)
        if response.error_code:
            raise NoResponseError(describe_code(response.error_code, response.error_message))
        for topic in response.topics:
            for partition in topic.partitions:
                yield topic.name, partition.partition_index, partition.adding_replicas, partition.removing_replicas

    def read_sizes(self, layout: ClusterLayout, node_ids: Iterable[int]) -> dict[int, dict[PartitionName, int]]:
        """Return the bytes of each replica on these brokers; a broker that does not answer has none."""
        sizes: dict[int, dict[PartitionName, int]] = {}
        for node_id in node_ids:
            try:
                address, request = layout.addresses[node_id], DescribeLogDirsRequest(topics=None)
                response = self._request(address, request, DescribeLogDirsResponse)
            except (NoResponseError, KeyError):
                continue
            sizes[node_id] = {
                PartitionName(topic.name, partition.partition_index): partition.partition_size
                for result in response.results
                for topic in result.topics
                for partition in topic.partitions
            }
        return sizes

    def begin(self, layout: ClusterLayout, moves: Sequence[ReplicaMove]) -> None:
        """Start the moves; raises ClusterCommandError for the first one that the controller refuses."""
        for start in range(0, len(moves), PARTITIONS_A_REQUEST):
            topics: dict[str, list[ReassignablePartition]] = defaultdict(list)
            for move in moves[start : start + PARTITIONS_A_REQUEST]:
                partition = ReassignablePartition(partition_index=move.name.partition, replicas=list(move.after))
                topics[move.name.topic].append(partition)
            request = AlterPartitionReassignmentsRequest(
                topics=[ReassignableTopic(name=topic, partitions=partitions) for topic, partitions in topics.items()]
            )
            response = self._request_controller(layout, request, AlterPartitionReassignmentsResponse)
            _check("the reassignment is refused", response.error_code, response.error_message)
            for topic in response.responses:
                for result in topic.partitions:
                    subject = f"the reassignment of {topic.name}-{result.partition_index} is refused"
                    _check(subject, result.error_code, result.error_message)

    def set_throttle(self, layout: ClusterLayout, moves: Iterable[ReplicaMove], bytes_per_second: int) -> None:
        """Limit what the brokers send and receive for these moves; raises ClusterCommandError if a broker refuses."""
        moves = list(moves)
        resources = list(_list_throttled_topics(moves))
        self._alter_configs(layout, layout.controller, resources)
        for node_id in sorted({node_id for move in moves for node_id in (*move.before, *move.after)}):
            entries = {name: str(bytes_per_second) for name in RATES}
            self._alter_configs(layout, node_id, [_make_resource(ResourceType.BROKER, str(node_id), entries)])

    def remove_throttle(self, layout: ClusterLayout) -> bool:
        """Remove the throttles of all brokers and topics; returns whether there were any."""
        throttled = [node_id for node_id in layout.addresses if self._find_configs(layout, node_id, [node_id], RATES)]
        if not throttled:
            return False
        for node_id in throttled:
            resource = _make_resource(ResourceType.BROKER, str(node_id), dict.fromkeys(RATES))
            self._alter_configs(layout, node_id, [resource])
        lists = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
        topics = sorted({name.topic for name in layout.places})
        names = self._find_configs(layout, layout.controller, topics, lists)
        resources = [_make_resource(ResourceType.TOPIC, name, dict.fromkeys(lists)) for name in names]
        self._alter_configs(layout, layout.controller, resources)
        return True

    def elect_preferred(self, layout: ClusterLayout, names: Iterable[PartitionName]) -> None:
        """Let the first replica of each partition lead it; raises ClusterCommandError if the controller cannot do that."""
        topics: dict[str, list[int]] = defaultdict(list)
        for name in names:
            topics[name.topic].append(name.partition)
        wanted = [TopicPartitions(topic=topic, partitions=partitions) for topic, partitions in topics.items()]
        request = ElectLeadersRequest(election_type=PREFERRED, topic_partitions=wanted)
        response = self._request_controller(layout, request, ElectLeadersResponse)
        _check("the election of leaders is refused", response.error_code, None)
        for topic in response.replica_election_results:
            for result in topic.partition_result:
                if result.error_code not in _ELECTED:
                    subject = f"{topic.topic}-{result.partition_id} keeps its leader"
                    _check(subject, result.error_code, result.error_message)

    def read_configs(self, layout: ClusterLayout, kind: ResourceType, name: str) -> dict[str, str]:
        """Return the configs of a resource that have a value, as the controller describes them.

        Raises ClusterCommandError if it refuses, and NoResponseError.
        """
        request = DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)]
        )
        (result,) = self._request_controller(layout, request, DescribeConfigsResponse).results
        _check(f"{name} cannot be described", result.error_code, result.error_message)
        return {entry.name: entry.value for entry in result.configs if entry.value is not None}

    def set_configs(self, layout: ClusterLayout, kind: ResourceType, name: str, entries: Mapping[str, str]) -> None:
        """Set configs of a resource; raises ClusterCommandError if the controller refuses, and NoResponseError."""
        request = IncrementalAlterConfigsRequest(resources=[_make_resource(kind, name, entries)])
        (result,) = self._request_controller(layout, request, IncrementalAlterConfigsResponse).responses
        _check(f"{name} cannot be changed", result.error_code, result.error_message)

    def _find_configs(
        self, layout: ClusterLayout, node_id: int, resources: Sequence[int | str], keys: Sequence[str]
    ) -> list[str]:
        """Return the names of the resources (brokers by id, topics by name) that have one of these configs themselves."""
        wanted = [
            DescribeConfigsResource(
                resource_type=ResourceType.BROKER if isinstance(resource, int) else ResourceType.TOPIC,
                resource_name=str(resource),
                configuration_keys=list(keys),
            )
            for resource in resources
        ]
        request = DescribeConfigsRequest(resources=wanted)
        response = self._request(layout.addresses[node_id], request, DescribeConfigsResponse)
        own = (DYNAMIC_BROKER_CONFIG, TOPIC_CONFIG)
        return [
            result.resource_name
            for result in response.results
            if any(entry.name in keys and entry.config_source in own for entry in result.configs)
        ]

    def _alter_configs(self, layout: ClusterLayout, node_id: int, resources: list[AlterConfigsResource]) -> None:
        if resources:
            request = IncrementalAlterConfigsRequest(resources=resources)
            response = self._request(layout.addresses[node_id], request, IncrementalAlterConfigsResponse)
            for result in response.responses:
                subject = f"the throttle of {result.resource_name} cannot be changed"
                _check(subject, result.error_code, result.error_message)

    def _request_controller(
        self, layout: ClusterLayout, request: Request, response: type[ResponseType]
    ) -> ResponseType:
        address = layout.addresses.get(layout.controller)
        if address is None:
            raise NoResponseError("the cluster has no controller at present")
        return self._request(address, request, response)

    def _request(self, address: tuple[str, int], request: Request, response: type[ResponseType]) -> ResponseType:
        try:
            with closing(self._connect(*address)) as connection:
                return connection.request(request, response)
        except NoResponseError as problem:
            raise NoResponseError(f"{address[0]}:{address[1]}: {problem}") from problem


def _list_throttled_topics(moves: Iterable[ReplicaMove]) -> Iterator[AlterConfigsResource]:
    """Yield the throttled replicas of each topic: all that may lead, and those that are added."""
    leaders: dict[str, list[str]] = defaultdict(list)
    followers: dict[str, list[str]] = defaultdict(list)
    for move in moves:
        leaders[move.name.topic] += [f"{move.name.partition}:{node_id}" for node_id in move.before]
        followers[move.name.topic] += [f"{move.name.partition}:{node_id}" for node_id in move.added]
    for topic in leaders:
        lists = {LEADER_REPLICAS: leaders[topic], FOLLOWER_REPLICAS: followers[topic]}
        yield _make_resource(
            ResourceType.TOPIC, topic, {name: ",".join(replicas) for name, replicas in lists.items() if replicas}
        )


def _make_resource(kind: ResourceType, name: str, entries: Mapping[str, str | None]) -> AlterConfigsResource:
    """Return the changes to a resource: values that are set, None for those that are removed."""
    configs = [
        AlterableConfig(name=config, config_operation=DELETE if value is None else SET, value=value)
        for config, value in entries.items()
    ]
    return AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)


def _check(subject: str, code: int, message: str | None) -> None:
    if code:
        raise ClusterCommandError(f"{subject}: {describe_code(code, message)}")
