"""A cluster that answers the requests of `status` from memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from kafkacompat.cli.command_config import ClientSecurity
from kafkacompat.cli.requests import NO_SECURITY, NoResponseError
from kafkacompat.wire.apis.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kafkacompat.wire.apis.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kafkacompat.wire.apis.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionDataResponse,
    TopicDataResponse,
)
from kafkacompat.wire.apis.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafkacompat.wire.apis.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from kafkacompat.wire.apis.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.schema import Request, Response

ResponseType = TypeVar("ResponseType", bound=Response)
FIRST_PORT = 9091
UNANSWERED = NoResponseError("it does not answer within 10 s")


class FakeCluster:
    """Brokers 1 to 3 on ports 9092 to 9094, and what each of them answers.

    ``partitions`` maps (topic, partition) to (leader, replicas, isr), ``ends`` (broker, topic, partition) to the log's end.
    A broker in ``down`` accepts no connection, and one in ``silent`` answers only the first requests of a bootstrap server.
    """

    def __init__(self) -> None:
        self.live = [1, 2, 3]
        self.fenced: list[int] = []
        self.down: set[int] = set()
        self.silent: set[int] = set()
        self.controller = 1
        self.quorum_leader: int | None = None
        self.partitions: dict[tuple[str, int], tuple[int, list[int], list[int]]] = {}
        self.adding: dict[tuple[str, int], list[int]] = {}
        self.ends: dict[tuple[int, str, int], int] = {}
        self.failed_dirs: dict[int, list[str]] = {}
        self.asked: list[tuple[int, Request]] = []
        self.open = 0
        self.security: ClientSecurity | None = None

    def connect(self, host: str, port: int, *, security: ClientSecurity = NO_SECURITY) -> FakeConnection:
        self.security = security
        node_id = port - FIRST_PORT
        if host != "127.0.0.1" or node_id in self.down or node_id not in self.live:
            raise NoResponseError("Connection refused")
        self.open += 1
        return FakeConnection(self, node_id)

    def answer(self, node_id: int, request: Request) -> Response:
        self.asked.append((node_id, request))
        answers: dict[type[Request], Callable[[int, Any], Response]] = {
            MetadataRequest: self._answer_metadata,
            DescribeClusterRequest: self._answer_describe_cluster,
            DescribeQuorumRequest: self._answer_quorum,
            ListPartitionReassignmentsRequest: self._answer_reassignments,
            DescribeLogDirsRequest: self._answer_log_dirs,
            ListOffsetsRequest: self._answer_ends,
        }
        return answers[type(request)](node_id, request)

    def _answer_metadata(self, _node_id: int, request: MetadataRequest) -> Response:
        assert request.topics is None and not request.allow_auto_topic_creation
        topics: dict[str, list[MetadataResponsePartition]] = {}
        for (topic, partition), (leader, replicas, isr) in self.partitions.items():
            described = MetadataResponsePartition(
                partition_index=partition, leader_id=leader, leader_epoch=4, replica_nodes=replicas, isr_nodes=isr
            )
            topics.setdefault(topic, []).append(described)
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=n, host="127.0.0.1", port=FIRST_PORT + n) for n in self.live],
            cluster_id="the-cluster",
            controller_id=self.controller,
            topics=[MetadataResponseTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
        )

    def _answer_describe_cluster(self, _node_id: int, request: DescribeClusterRequest) -> Response:
        assert request.include_fenced_brokers
        brokers = [
            DescribeClusterBroker(broker_id=n, host="127.0.0.1", port=FIRST_PORT + n, is_fenced=n in self.fenced)
            for n in (*self.live, *self.fenced)
        ]
        return DescribeClusterResponse(brokers=brokers)

    def _answer_quorum(self, _node_id: int, _request: DescribeQuorumRequest) -> Response:
        leader = -1 if self.quorum_leader is None else self.quorum_leader
        partition = PartitionDataResponse(partition_index=0, leader_id=leader, leader_epoch=1, error_message=None)
        return DescribeQuorumResponse(
            error_message=None, topics=[TopicDataResponse(topic_name="__cluster_metadata", partitions=[partition])]
        )

    def _answer_reassignments(self, node_id: int, _request: ListPartitionReassignmentsRequest) -> Response:
        if node_id in self.silent:
            raise UNANSWERED
        assert node_id == self.controller
        topics = [
            OngoingTopicReassignment(
                name=topic, partitions=[OngoingPartitionReassignment(partition_index=index, adding_replicas=adding)]
            )
            for (topic, index), adding in self.adding.items()
        ]
        return ListPartitionReassignmentsResponse(error_message=None, topics=topics)

    def _answer_log_dirs(self, node_id: int, request: DescribeLogDirsRequest) -> Response:
        if node_id in self.silent:
            raise UNANSWERED
        assert request.topics is None
        logs = [DescribeLogDirsPartition(partition_index=n, partition_size=1000 * node_id) for n in range(2)]
        results = [DescribeLogDirsResult(log_dir="/d", topics=[DescribeLogDirsTopic(name="t", partitions=logs)])]
        results += [
            DescribeLogDirsResult(log_dir=path, error_code=ErrorCode.KAFKA_STORAGE_ERROR)
            for path in self.failed_dirs.get(node_id, [])
        ]
        return DescribeLogDirsResponse(results=results)

    def _answer_ends(self, node_id: int, request: ListOffsetsRequest) -> Response:
        if node_id in self.silent:
            raise UNANSWERED
        assert request.replica_id == -2
        topics = []
        for topic in request.topics:
            partitions = []
            for wanted in topic.partitions:
                assert wanted.timestamp == -1
                end = self.ends.get((node_id, topic.name, wanted.partition_index))
                error = ErrorCode.NOT_LEADER_OR_FOLLOWER if end is None else ErrorCode.NONE
                partitions.append(
                    ListOffsetsPartitionResponse(
                        partition_index=wanted.partition_index, error_code=error, offset=-1 if end is None else end
                    )
                )
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
        return ListOffsetsResponse(topics=topics)


class FakeConnection:
    """A connection to one broker of a fake cluster."""

    def __init__(self, cluster: FakeCluster, node_id: int) -> None:
        self._cluster = cluster
        self._node_id = node_id

    def __enter__(self) -> FakeConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def find_version(self, request: type[Request]) -> int | None:
        if request is DescribeQuorumRequest and self._cluster.quorum_leader is None:
            return None
        return request.VERSIONS.last

    def request(self, request: Request, response: type[ResponseType]) -> ResponseType:
        answer = self._cluster.answer(self._node_id, request)
        assert isinstance(answer, response)
        return answer

    def close(self) -> None:
        self._cluster.open -= 1
