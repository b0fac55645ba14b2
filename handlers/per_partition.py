"""Errors of single partitions in a response; the other partitions of the request are not affected."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkacompat.cluster.decisions.situation import TopicPartition

log = logging.getLogger(__name__)

ResultT = TypeVar("ResultT")


def error_code_of(problem: BaseException) -> ErrorCode:
    """Return the error code for a failure; anything but a KafkaError is a defect and is logged."""
    if isinstance(problem, KafkaError):
        return problem.code
    log.error("a partition's part of a request failed", exc_info=problem)
    return ErrorCode.UNKNOWN_SERVER_ERROR


def list_by_topic(
    outcomes: Mapping[TopicPartition, KafkaError | None], make_result: Callable[[int, ErrorCode, str | None], ResultT]
) -> dict[str, list[ResultT]]:
    """Return the results of partitions by topic; *make_result* takes a partition's number, its error and the message."""
    topics: dict[str, list[ResultT]] = {}
    for (topic, index), outcome in outcomes.items():
        code, detail = (ErrorCode.NONE, None) if outcome is None else (outcome.code, outcome.detail)
        topics.setdefault(topic, []).append(make_result(index, code, detail))
    return topics
