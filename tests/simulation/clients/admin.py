"""An administrator's client."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from twisted.internet.defer import Deferred

from kafkacompat.history.events import HistoryPartition
from kafkacompat.timers import Clock
from kafkacompat.wire.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafkacompat.wire.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kafkacompat.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kafkacompat.wire.apis.elect_leaders import ElectLeadersRequest, TopicPartitions
from kafkacompat.wire.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.schema import Request
from tests.fakes.memory_network import MemoryHost
from tests.simulation.clients.errors import RETRIABLE
from tests.simulation.clients.process import ClientProcess, HistorySink
from tests.simulation.clients.settings import AdminSettings

TOPIC_RESOURCE = 2
SET, DELETE = 0, 1
PREFERRED = 0
UNKNOWN_OUTCOME = frozenset({ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER})
"""Codes after which a change may have been made all the same."""


class Admin:
    """Changes topics through any broker. Each method fires with the code of the outcome.

    Requests are repeated until one is answered; REQUEST_TIMED_OUT means that none was in time. If an earlier attempt may have made
    the change, the code that says that it is made already counts as NONE.
    """

    def __init__(
        self,
        clock: Clock,
        network: MemoryHost,
        rng: Random,
        bootstrap: Sequence[tuple[str, int]],
        sink: HistorySink,
        name: str,
        settings: AdminSettings,
    ) -> None:
        self.process = ClientProcess(clock, network, rng, bootstrap, sink, name, settings)
        self._settings = settings
        self._timeout_ms = int(settings.operation_timeout_s * 1000)

    def start(self) -> None:
        """Learn of the brokers."""
        self.process.cluster.request_update()

    def stop(self) -> None:
        """Close the connections."""
        self.process.close()

    def kill(self) -> None:
        """End the process."""
        self.process.kill()

    # Changes

    def create_topic(
        self, name: str, partitions: int, replicas: int, configs: Mapping[str, str] | None = None
    ) -> Deferred[ErrorCode]:
        """Create a topic."""
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replicas,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=self._timeout_ms)
        return self._change(request, lambda response: response.topics[0].error_code, ErrorCode.TOPIC_ALREADY_EXISTS)

    def grow_topic(self, name: str, partitions: int) -> Deferred[ErrorCode]:
        """Give a topic more partitions."""
        topic = CreatePartitionsTopic(name=name, count=partitions, assignments=None)
        request = CreatePartitionsRequest(topics=[topic], timeout_ms=self._timeout_ms)
        return self._change(request, lambda response: response.results[0].error_code, ErrorCode.INVALID_PARTITIONS)

    def delete_topic(self, name: str) -> Deferred[ErrorCode]:
        """Delete a topic."""
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name)], topic_names=[name], timeout_ms=self._timeout_ms
        )
        return self._change(
            request, lambda response: response.responses[0].error_code, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )

    def reassign(self, place: HistoryPartition, replicas: Sequence[int] | None) -> Deferred[ErrorCode]:
        """Move a partition to some brokers; None cancels that."""
        partition = ReassignablePartition(
            partition_index=place.partition, replicas=None if replicas is None else list(replicas)
        )
        request = AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(name=place.topic, partitions=[partition])], timeout_ms=self._timeout_ms
        )

        def find_error(response: Any) -> int:
            return int(response.error_code or response.responses[0].partitions[0].error_code)

        return self._change(request, find_error, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)

    def elect(self, place: HistoryPartition, election_type: int = PREFERRED) -> Deferred[ErrorCode]:
        """Elect a partition's leader."""
        request = ElectLeadersRequest(
            election_type=election_type,
            topic_partitions=[TopicPartitions(topic=place.topic, partitions=[place.partition])],
            timeout_ms=self._timeout_ms,
        )

        def find_error(response: Any) -> int:
            results = response.replica_election_results
            return int(response.error_code or (results[0].partition_result[0].error_code if results else 0))

        return self._change(request, find_error, ErrorCode.ELECTION_NOT_NEEDED)

    def alter_config(self, topic: str, name: str, value: str | None) -> Deferred[ErrorCode]:
        """Set a config of a topic; None deletes it."""
        config = AlterableConfig(name=name, config_operation=DELETE if value is None else SET, value=value)
        resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=topic, configs=[config])
        request = IncrementalAlterConfigsRequest(resources=[resource])
        return self._change(request, lambda response: response.responses[0].error_code, ErrorCode.NONE)

    def _change(
        self, request: Request, find_error: Callable[[Any], int], made_already: ErrorCode
    ) -> Deferred[ErrorCode]:
        return Deferred.fromCoroutine(self._repeat(request, find_error, made_already))

    async def _repeat(self, request: Request, find_error: Callable[[Any], int], made_already: ErrorCode) -> ErrorCode:
        process = self.process
        backoff = process.make_backoff()
        deadline = process.clock.seconds() + self._settings.give_up_s
        may_be_made = False
        while process.clock.seconds() < deadline:
            try:
                broker = process.cluster.choose_broker()
                response = await process.try_send(broker, request, longer_s=self._settings.operation_timeout_s)
                code = ErrorCode(find_error(response))
            except KafkaError as problem:
                code = problem.code
            if code is made_already and may_be_made:
                return ErrorCode.NONE
            if code not in RETRIABLE or code is made_already:
                return code
            may_be_made |= code in UNKNOWN_OUTCOME
            await process.sleep(backoff.next_s())
        return ErrorCode.REQUEST_TIMED_OUT
