"""Filling the response to a Produce request."""

from __future__ import annotations

from kafkacompat.handlers.context import UnanswerableError
from kafkacompat.handlers.leader_hints import LeaderHints
from kafkacompat.handlers.per_partition import error_code_of
from kafkacompat.metadata.topic_names import format_topic
from kafkacompat.partitions.partition import Partition
from kafkacompat.storage.log.log import AppendResult
from kafkacompat.wire.apis.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.record_batch import InvalidRecordsError

# Errors found before the log checks a batch: Kafka leaves log_start_offset out of their responses.
ERRORS_BEFORE_THE_LOG = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    }
)


def build_response(request: ProduceRequest, response: ProduceResponse) -> ProduceResponse | None:
    """Return the response; None with acks=0. Raises UnanswerableError for an error with acks=0."""
    if request.acks != 0:
        return response
    for topic in response.responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                code = ErrorCode(partition.error_code).name
                where = f"{format_topic(topic.name or topic.topic_id)}-{partition.index}"
                raise UnanswerableError(f"a Produce with acks=0 to {where} failed with {code}")
    return None


def name_leaders(response: ProduceResponse, hints: LeaderHints) -> None:
    """Name the leader of each partition that this broker does not lead."""
    for topic in response.responses:
        for partition in topic.partition_responses:
            if partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                leader = hints.find_leader(topic.name or topic.topic_id, partition.index)
                if leader is not None:
                    partition.current_leader = LeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1])
    response.node_endpoints = [NodeEndpoint(**address._asdict()) for address in hints.addresses.values()]


def fill_accepted(response: PartitionProduceResponse, result: AppendResult) -> None:
    """Fill in the offset and the times of an appended batch."""
    response.base_offset = result.base_offset
    response.log_append_time_ms = result.log_append_time_ms
    response.log_start_offset = result.log_start_offset


def fill_refused(response: PartitionProduceResponse, problem: BaseException, partition: Partition | None) -> None:
    """Fill in the error of a rejected batch."""
    response.error_code = error_code_of(problem)
    if partition is not None and response.error_code not in ERRORS_BEFORE_THE_LOG:
        response.log_start_offset = partition.log.state.log_start_offset
    if isinstance(problem, KafkaError) and problem.detail:
        response.error_message = problem.detail
    if isinstance(problem, InvalidRecordsError):
        response.record_errors = [
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
            for index, message in problem.record_errors
        ]
