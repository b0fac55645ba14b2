"""A run that spreads partitions, against a cluster that answers from memory and copies a little with each look."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafkacompat.cli.cluster.folder import ClusterCommandError
from kafkacompat.cli.cluster.reading import PartitionName
from kafkacompat.cli.cluster.reassigning import RATES, ClusterMover
from kafkacompat.cli.cluster.spread_run import SpreadRun
from kafkacompat.cli.requests import NoResponseError
from kafkacompat.wire.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kafkacompat.wire.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kafkacompat.wire.apis.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kafkacompat.wire.apis.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from kafkacompat.wire.apis.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
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

TOPIC, SIZE_BYTES = "t", 1000
CONTROLLER = 2


class MovingCluster:
    """One topic on brokers whose ports are their ids. A reassignment takes ``looks`` pauses."""

    def __init__(self, replicas: list[list[int]], brokers: int, looks: int = 2) -> None:
        self.live = list(range(1, brokers + 1))
        self.replicas = replicas
        self.leaders = [assigned[0] for assigned in replicas]
        self.targets: dict[int, list[int]] = {}
        self.looks_left = self._looks = looks
        self.configs: dict[str, dict[str, str]] = {}
        self.throttles_while_moving: dict[str, dict[str, str]] = {}
        self.refusal = ErrorCode.NONE
        self.silences = 0
        self.stale_looks = 0
        self._last_metadata = MetadataResponse()

    def connect(self, host: str, port: int) -> Connection:
        if host != "h" or port not in self.live:
            raise NoResponseError("Connection refused")
        return Connection(self, port)

    def pause(self, _seconds: float) -> None:
        self.looks_left -= 1
        if self.looks_left == 0:
            for index, replicas in self.targets.items():
                self.replicas[index] = replicas
                if self.leaders[index] not in replicas:
                    self.leaders[index] = replicas[-1]
            self.targets.clear()

    def answer(self, node_id: int, request: Request) -> Response:
        if self.silences:
            self.silences -= 1
            raise NoResponseError("it does not answer within 10 s")
        answers: dict[type[Request], Callable[[int, Any], Response]] = {
            MetadataRequest: self._answer_metadata,
            ListPartitionReassignmentsRequest: self._answer_list,
            AlterPartitionReassignmentsRequest: self._answer_reassignment,
            DescribeLogDirsRequest: self._answer_log_dirs,
            DescribeConfigsRequest: self._answer_configs,
            IncrementalAlterConfigsRequest: self._answer_alteration,
            ElectLeadersRequest: self._answer_election,
        }
        return answers[type(request)](node_id, request)

    def _present(self, index: int) -> list[int]:
        added = [node_id for node_id in self.targets.get(index, []) if node_id not in self.replicas[index]]
        return [*self.replicas[index], *added]

    def _answer_metadata(self, _node_id: int, _request: MetadataRequest) -> Response:
        if self.stale_looks and not self.targets:
            self.stale_looks -= 1
        else:
            self._last_metadata = self._describe()
        return self._last_metadata

    def _describe(self) -> MetadataResponse:
        partitions = [
            MetadataResponsePartition(partition_index=index, leader_id=leader, replica_nodes=self._present(index))
            for index, leader in enumerate(self.leaders)
        ]
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=node_id, host="h", port=node_id) for node_id in self.live],
            controller_id=CONTROLLER,
            topics=[MetadataResponseTopic(name=TOPIC, partitions=partitions)],
        )

    def _answer_list(self, node_id: int, _request: ListPartitionReassignmentsRequest) -> Response:
        assert node_id == CONTROLLER
        ongoing = [
            OngoingPartitionReassignment(
                partition_index=index,
                replicas=self._present(index),
                adding_replicas=[node for node in replicas if node not in self.replicas[index]],
                removing_replicas=[node for node in self.replicas[index] if node not in replicas],
            )
            for index, replicas in self.targets.items()
        ]
        topics = [OngoingTopicReassignment(name=TOPIC, partitions=ongoing)]
        return ListPartitionReassignmentsResponse(error_message=None, topics=topics)

    def _answer_reassignment(self, node_id: int, request: AlterPartitionReassignmentsRequest) -> Response:
        assert node_id == CONTROLLER
        (topic,) = request.topics
        results = []
        for partition in topic.partitions:
            if not self.refusal:
                self.targets[partition.partition_index] = list(partition.replicas or [])
            results.append(
                ReassignablePartitionResponse(
                    partition_index=partition.partition_index, error_code=self.refusal, error_message=None
                )
            )
        self.looks_left = self._looks
        self.throttles_while_moving = {name: dict(configs) for name, configs in self.configs.items()}
        responses = [ReassignableTopicResponse(name=TOPIC, partitions=results)]
        return AlterPartitionReassignmentsResponse(error_message=None, responses=responses)

    def _answer_log_dirs(self, node_id: int, _request: DescribeLogDirsRequest) -> Response:
        logs = [
            DescribeLogDirsPartition(
                partition_index=index,
                partition_size=SIZE_BYTES if node_id in self.replicas[index] else SIZE_BYTES // 4,
            )
            for index in range(len(self.replicas))
            if node_id in self._present(index)
        ]
        topics = [DescribeLogDirsTopic(name=TOPIC, partitions=logs)]
        return DescribeLogDirsResponse(results=[DescribeLogDirsResult(log_dir="/d", topics=topics)])

    def _answer_configs(self, _node_id: int, request: DescribeConfigsRequest) -> Response:
        results = []
        for resource in request.resources:
            source = 2 if resource.resource_type == 4 else 1
            entries = [
                DescribeConfigsResourceResult(name=name, value=value, config_source=source)
                for name, value in self.configs.get(resource.resource_name, {}).items()
            ]
            entries.append(DescribeConfigsResourceResult(name=RATES[0], value="9223372036854775807", config_source=5))
            results.append(
                DescribeConfigsResult(error_message=None, resource_name=resource.resource_name, configs=entries)
            )
        return DescribeConfigsResponse(results=results)

    def _answer_alteration(self, node_id: int, request: IncrementalAlterConfigsRequest) -> Response:
        for resource in request.resources:
            if resource.resource_type == 4:
                assert resource.resource_name == str(node_id)
            configs = self.configs.setdefault(resource.resource_name, {})
            for entry in resource.configs:
                if entry.config_operation == 0:
                    configs[entry.name] = str(entry.value)
                else:
                    configs.pop(entry.name, None)
            if not configs:
                del self.configs[resource.resource_name]
        return IncrementalAlterConfigsResponse(
            responses=[
                AlterConfigsResourceResponse(
                    resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
                )
                for resource in request.resources
            ]
        )

    def _answer_election(self, node_id: int, request: ElectLeadersRequest) -> Response:
        assert (node_id, request.election_type) == (CONTROLLER, 0)
        for topic in request.topic_partitions or []:
            for index in topic.partitions:
                self.leaders[index] = self.replicas[index][0]
        return ElectLeadersResponse()


class Connection:
    """A connection to one broker of the cluster."""

    def __init__(self, cluster: MovingCluster, node_id: int) -> None:
        self._cluster = cluster
        self._node_id = node_id

    def find_version(self, request: type[Request]) -> int | None:
        return request.VERSIONS.last

    def request(self, request: Request, response: type[Any]) -> Any:
        answer = self._cluster.answer(self._node_id, request)
        assert isinstance(answer, response)
        return answer

    def close(self) -> None:
        pass


def make_run(cluster: MovingCluster) -> SpreadRun:
    return SpreadRun(ClusterMover([("h", 9), ("h", 1)], cluster.connect), cluster.pause)


def four_on_two() -> MovingCluster:
    return MovingCluster([[1, 2], [2, 1], [1, 2], [2, 1]], brokers=4)


def test_replicas_move_under_a_throttle_that_is_removed() -> None:
    cluster = four_on_two()
    run, copied = make_run(cluster), list[int]()
    plan = run.plan()
    assert (plan.replicas_moved, plan.size_bytes) == (4, 4 * SIZE_BYTES)
    assert run.carry_out(plan, 5000, copied.append)
    assert sorted(node_id for replicas in cluster.replicas for node_id in replicas) == [1, 1, 2, 2, 3, 3, 4, 4]
    assert cluster.leaders == [replicas[0] for replicas in cluster.replicas]
    assert cluster.configs == {}
    assert copied == [SIZE_BYTES, SIZE_BYTES, 4 * SIZE_BYTES]
    throttles = cluster.throttles_while_moving
    assert [throttles[str(node_id)] for node_id in range(1, 5)] == [dict.fromkeys(RATES, "5000")] * 4
    moved = {(index, node_id) for index, replicas in enumerate(cluster.replicas) for node_id in replicas if node_id > 2}
    followers = throttles[TOPIC]["follower.replication.throttled.replicas"].split(",")
    assert sorted(followers) == sorted(f"{index}:{node_id}" for index, node_id in moved)
    leaders = throttles[TOPIC]["leader.replication.throttled.replicas"].split(",")
    assert sorted(leaders) == sorted(f"{index}:{node}" for index in {index for index, _ in moved} for node in (1, 2))


def test_without_a_throttle_no_config_changes() -> None:
    cluster = four_on_two()
    run = make_run(cluster)
    assert not run.carry_out(run.plan(), None, lambda _copied: None)
    assert cluster.throttles_while_moving == {}


def test_an_interrupted_run_is_adopted() -> None:
    cluster = four_on_two()
    interrupted = make_run(cluster)
    plan = interrupted.plan()
    mover = ClusterMover([("h", 1)], cluster.connect)
    mover.set_throttle(plan.layout, plan.moves, 5000)
    mover.begin(plan.layout, plan.moves)
    run = make_run(cluster)
    adopted = run.plan()
    assert (adopted.moves, len(adopted.ongoing)) == ([], len(plan.moves))
    assert {move.name: set(move.before) for move in adopted.ongoing} == {
        move.name: set(move.before) for move in plan.moves
    }
    assert run.carry_out(adopted, None, lambda _copied: None)
    assert (cluster.targets, cluster.configs) == ({}, {})
    assert make_run(cluster).plan().all_moves == []


def test_a_throttle_that_was_left_is_removed() -> None:
    cluster = MovingCluster([[1], [2]], brokers=2)
    cluster.configs = {"1": {RATES[1]: "7"}, TOPIC: {"follower.replication.throttled.replicas": "0:2"}}
    run = make_run(cluster)
    assert run.carry_out(run.plan(), None, lambda _copied: None)
    assert cluster.configs == {}


def test_metadata_that_is_late_does_not_look_like_a_cancelled_move() -> None:
    cluster = four_on_two()
    run = make_run(cluster)
    plan = run.plan()
    cluster.stale_looks = 5
    run.carry_out(plan, None, lambda _copied: None)
    assert cluster.stale_looks == 0
    assert make_run(cluster).plan().all_moves == []


def test_brokers_that_are_silent_for_a_while_do_not_end_the_run() -> None:
    cluster = four_on_two()
    run = make_run(cluster)
    plan = run.plan()

    def fall_silent(_copied: int) -> None:
        cluster.silences = 20 if cluster.looks_left == 2 else 0

    run.carry_out(plan, None, fall_silent)
    assert cluster.targets == {}


def test_brokers_that_stay_silent_end_the_run() -> None:
    cluster = four_on_two()
    run = make_run(cluster)

    def fall_silent(_copied: int) -> None:
        cluster.silences = 1_000_000

    with pytest.raises(NoResponseError, match="does not answer"):
        run.carry_out(run.plan(), None, fall_silent)


def test_a_refused_reassignment_leaves_no_throttle() -> None:
    cluster = four_on_two()
    cluster.refusal = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    run = make_run(cluster)
    with pytest.raises(ClusterCommandError, match=r"reassignment of t-0 is refused: INVALID_REPLICA_ASSIGNMENT"):
        run.carry_out(run.plan(), 5000, lambda _copied: None)
    assert cluster.configs == {}


def test_a_cancelled_reassignment_is_a_sentence() -> None:
    cluster = four_on_two()
    run = make_run(cluster)

    def cancel(_copied: int) -> None:
        cluster.targets.pop(0, None)

    with pytest.raises(ClusterCommandError, match=r"1 reassignments were cancelled or changed, such as that of t-0"):
        run.carry_out(run.plan(), None, cancel)


def test_partitions_that_are_not_sound_are_named() -> None:
    cluster = four_on_two()
    cluster.live.remove(1)
    with pytest.raises(ClusterCommandError, match="broker 1 has a replica of t-0 and is down"):
        SpreadRun(ClusterMover([("h", 2)], cluster.connect), cluster.pause).plan()
    cluster = four_on_two()
    cluster.leaders[3] = -1
    with pytest.raises(ClusterCommandError, match="t-3 has no leader"):
        make_run(cluster).plan()


def test_brokers_that_have_yet_to_start_are_planned_for() -> None:
    cluster = MovingCluster([[1], [1], [1]], brokers=2)
    plan = make_run(cluster).plan(range(3, 4))
    assert sorted(move.after for move in plan.moves) == [(2,), (3,)]
    assert plan.moves[0].name == PartitionName(TOPIC, 0)


def test_a_broker_that_never_registers_is_named() -> None:
    cluster = four_on_two()
    run = make_run(cluster)
    run.await_brokers([1, 4])
    with pytest.raises(ClusterCommandError, match="broker 5 is ready, but the cluster does not know it"):
        run.await_brokers([4, 5])
