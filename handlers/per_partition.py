"""Where the failure of one partition becomes its error code; the others of the request go on."""

from __future__ import annotations

import logging

from kafkacompat.wire.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)


def error_code_of(problem: BaseException) -> ErrorCode:
    """The code for a failure; what is not a KafkaError is a defect of ours and goes to the log."""
    if isinstance(problem, KafkaError):
        return problem.code
    log.error("a partition's part of a request failed", exc_info=problem)
    return ErrorCode.UNKNOWN_SERVER_ERROR
