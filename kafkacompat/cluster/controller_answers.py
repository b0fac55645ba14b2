"""The controller's answers to requests of brokers: about in-sync sets, orderly shutdowns, producer ids and instances' traffic."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kafkacompat.cluster.decisions.in_sync_changes import InSyncChange, InSyncRequest
from kafkacompat.metadata.image import PartitionImage
from kafkacompat.wire.apis.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from kafkacompat.wire.apis.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionResult,
    TopicResult,
)
from kafkacompat.wire.apis.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)
from kafkacompat.wire.apis.report_storage import ReportStorageRequest, ReportStorageResponse, StoredBytes
from kafkacompat.wire.apis.report_traffic import ReportTrafficRequest, ReportTrafficResponse
from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafkacompat.cluster.active_controller import ActiveController


class ControllerAnswers:
    """Answers with the decisions of the controller; *require_active* raises KafkaError NOT_CONTROLLER on any other broker."""

    def __init__(self, require_active: Callable[[], ActiveController]) -> None:
        self._require_active = require_active

    async def alter_partition(self, request: AlterPartitionRequest, version: int) -> AlterPartitionResponse:
        """Change in-sync sets (AlterPartition)."""
        changes = [
            _read_change(topic.topic_id if version > 1 else topic.topic_name, data, version)
            for topic in request.topics
            for data in topic.partitions
        ]
        try:
            results = await self._require_active().change_in_sync_sets(
                InSyncRequest(request.broker_id, request.broker_epoch, version, changes)
            )
        except KafkaError as problem:
            return AlterPartitionResponse(error_code=problem.code)
        return _build_in_sync_answer(request, results)

    async def shut_down_broker(self, request: ControlledShutdownRequest) -> ControlledShutdownResponse:
        """Move the leaderships of a broker (ControlledShutdown)."""
        try:
            remaining = await self._require_active().shut_down_broker(request.broker_id, request.broker_epoch)
        except KafkaError as problem:
            return ControlledShutdownResponse(error_code=problem.code)
        return ControlledShutdownResponse(
            remaining_partitions=[
                RemainingPartition(topic_name=key.topic, partition_index=key.partition) for key in remaining
            ]
        )

    async def allocate_producer_ids(self, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
        """Allocate a block of producer ids (AllocateProducerIds)."""
        try:
            block = await self._require_active().allocate_producer_ids(request.broker_id, request.broker_epoch)
        except KafkaError as problem:
            return AllocateProducerIdsResponse(error_code=problem.code)
        return AllocateProducerIdsResponse(producer_id_start=block.start, producer_id_len=len(block))

    async def report_storage(self, request: ReportStorageRequest) -> ReportStorageResponse:
        """Add up what instances store (ReportStorage)."""
        stored = {entry.instance: entry.stored_bytes for entry in request.stored}
        try:
            totals = self._require_active().add_up_storage(request.broker_id, request.broker_epoch, stored)
        except KafkaError as problem:
            return ReportStorageResponse(error_code=problem.code)
        return ReportStorageResponse(
            totals=[StoredBytes(instance=name, stored_bytes=size_bytes) for name, size_bytes in totals.items()]
        )

    async def report_traffic(self, request: ReportTrafficRequest) -> ReportTrafficResponse:
        """Divide the traffic of instances (ReportTraffic)."""
        try:
            return await self._require_active().traffic.answer(request)
        except KafkaError as problem:
            return ReportTrafficResponse(error_code=problem.code)


def _read_change(topic: str | bytes, data: Any, version: int) -> InSyncChange:
    members = data.new_isr_with_epochs if version > 2 else []
    return InSyncChange(
        topic,
        data.partition_index,
        data.leader_epoch,
        data.partition_epoch,
        tuple(member.broker_id for member in members) if version > 2 else tuple(data.new_isr),
        tuple(member.broker_epoch for member in members),
        bool(data.leader_recovery_state),
    )


def _build_in_sync_answer(
    request: AlterPartitionRequest, results: Sequence[PartitionImage | ErrorCode]
) -> AlterPartitionResponse:
    left = iter(results)
    return AlterPartitionResponse(
        topics=[
            TopicResult(
                topic_name=topic.topic_name,
                topic_id=topic.topic_id,
                partitions=[_build_result(data.partition_index, next(left)) for data in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _build_result(index: int, result: PartitionImage | ErrorCode) -> PartitionResult:
    if isinstance(result, ErrorCode):
        return PartitionResult(partition_index=index, error_code=result)
    return PartitionResult(
        partition_index=index,
        leader_id=result.leader,
        leader_epoch=result.leader_epoch,
        isr=list(result.in_sync_replicas),
        leader_recovery_state=int(result.is_recovering),
        partition_epoch=result.partition_epoch,
    )
