"""The states of a followed partition, as tables.

Rule 1. `PREDECESSORS` names the states that may precede a state. Any other change is a programming error.

Rule 2. Before it fetches in a leader epoch, a follower makes sure that its log holds nothing the leader does not have. A
partition with an epoch in its log asks where that epoch ends on the leader (*TRUNCATING*), as often as the two logs need to
agree (KIP-101, KIP-279). From Fetch 12 on it fetches at once and names its last epoch: the leader answers with the epoch
from which the logs diverge (KIP-595). A log without epochs is cut at its high watermark.

Rule 3. An offset that the leader does not have makes the follower ask for the leader's end and start (*OUT_OF_RANGE*).

Rule 4. While the log changes (*CHANGING*) nothing is fetched. A partition follows an earlier epoch's change in *WAITING*.

Rule 5. `ON_FETCH_ERROR` and `ON_EPOCH_ERROR` name the state after an error of the leader, `ON_CHANGE_ERROR` that after a
failed change of the log. Every other error of the leader delays the partition by ``replica.fetch.backoff.ms``, and every
other failure of the log fails it. A failed partition waits for its next leader epoch.
"""

from __future__ import annotations

from enum import Enum, auto

from kafkacompat.wire.errors import ErrorCode


class FetchState(Enum):
    """The state of one followed partition."""

    WAITING = auto()
    TRUNCATING = auto()
    FETCHING = auto()
    OUT_OF_RANGE = auto()
    CHANGING = auto()
    DELAYED = auto()
    FAILED = auto()


WAITING = FetchState.WAITING
TRUNCATING = FetchState.TRUNCATING
FETCHING = FetchState.FETCHING
OUT_OF_RANGE = FetchState.OUT_OF_RANGE
CHANGING = FetchState.CHANGING
DELAYED = FetchState.DELAYED
FAILED = FetchState.FAILED

PREDECESSORS: dict[FetchState, frozenset[FetchState]] = {
    WAITING: frozenset(),
    TRUNCATING: frozenset({WAITING, CHANGING, DELAYED}),
    FETCHING: frozenset({WAITING, TRUNCATING, OUT_OF_RANGE, CHANGING, DELAYED}),
    OUT_OF_RANGE: frozenset({FETCHING}),
    CHANGING: frozenset({WAITING, TRUNCATING, FETCHING, OUT_OF_RANGE, CHANGING, DELAYED}),
    DELAYED: frozenset({WAITING, TRUNCATING, FETCHING, OUT_OF_RANGE, CHANGING, DELAYED}),
    FAILED: frozenset({WAITING, TRUNCATING, FETCHING, OUT_OF_RANGE, CHANGING, DELAYED}),
}

ON_FETCH_ERROR: dict[ErrorCode, FetchState] = {
    ErrorCode.OFFSET_OUT_OF_RANGE: OUT_OF_RANGE,
    # The leader has a newer epoch. The controller will notify this broker of it.
    ErrorCode.FENCED_LEADER_EPOCH: FAILED,
}
"""The state after an error in a Fetch response; DELAYED after any other."""

ON_EPOCH_ERROR: dict[ErrorCode, FetchState] = {ErrorCode.FENCED_LEADER_EPOCH: FAILED}
"""The state after an error in an answer to OffsetForLeaderEpoch or ListOffsets; DELAYED after any other."""

ON_CHANGE_ERROR: dict[ErrorCode, FetchState] = {
    # A transfer may damage a batch, and a leader may truncate while it answers: the next fetch brings the batch again.
    ErrorCode.CORRUPT_MESSAGE: DELAYED,
    ErrorCode.INVALID_RECORD: DELAYED,
    # A full disk may have room again. The partitions of a failed directory are stopped by the directory's owner.
    ErrorCode.KAFKA_STORAGE_ERROR: DELAYED,
}
"""The state after a KafkaError of a log change; FAILED after any other, and after any other exception."""

TRANSIENT_ERRORS = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.LEADER_NOT_AVAILABLE,
    }
)
"""Errors that follow every change of a leader or topic until all brokers know of it: no reason for a warning."""


def find_error(error_code: int) -> ErrorCode:
    """Return the error with a number; UNKNOWN_SERVER_ERROR for one that only newer brokers know."""
    try:
        return ErrorCode(error_code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
