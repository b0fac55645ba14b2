"""Error codes of the broker's responses as sentences for people."""

from __future__ import annotations

from kafkacompat.monitoring.administration.answers import HttpError
from kafkacompat.wire.errors import ErrorCode

SENTENCES = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: (404, "{} does not exist"),
    ErrorCode.UNKNOWN_TOPIC_ID: (404, "{} does not exist"),
    ErrorCode.INVALID_TOPIC_EXCEPTION: (404, "{} does not exist"),
    ErrorCode.GROUP_ID_NOT_FOUND: (404, "{} does not exist on this broker"),
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: (403, "you are not allowed to see {}"),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: (403, "you are not allowed to see {}"),
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: (403, "you are not allowed to see {}"),
    ErrorCode.NOT_COORDINATOR: (404, "{} is coordinated by another broker: open the page of that broker"),
    ErrorCode.COORDINATOR_NOT_AVAILABLE: (503, "{} has no coordinator at the moment: try again"),
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: (503, "{} is being loaded: try again"),
    ErrorCode.NOT_LEADER_OR_FOLLOWER: (503, "{} is not on this broker: open the page of its leader"),
    ErrorCode.OFFSET_OUT_OF_RANGE: (404, "{} does not have this offset"),
}
"""The HTTP status and the sentence of an error code; {} is the subject."""


def check(code: int, subject: str) -> None:
    """Raise HttpError for the error code of a response about *subject*."""
    if code:
        raise HttpError(*explain(code, subject))


def explain(code: int, subject: str) -> tuple[int, str]:
    """Return the HTTP status and the sentence of an error code."""
    known = ErrorCode(code) if code in set(ErrorCode) else ErrorCode.UNKNOWN_SERVER_ERROR
    status, sentence = SENTENCES.get(known, (500, "the broker reports " + known.name + " for {}"))
    return status, sentence.replace("{}", subject)
