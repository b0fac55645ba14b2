"""Turns the failure of one partition into its error code; the other partitions of the request are not affected."""

from __future__ import annotations

import logging

from kafkacompat.wire.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)


def error_code_of(problem: BaseException) -> ErrorCode:
    """Return the error code for a failure; anything but a KafkaError is a defect and is logged."""
    if isinstance(problem, KafkaError):
        return problem.code
    log.error("a partition's part of a request failed", exc_info=problem)
    return ErrorCode.UNKNOWN_SERVER_ERROR
