"""Error codes have the numbers that clients know them by."""

from __future__ import annotations

import pytest

from kafkacompat.wire.errors import ErrorCode, KafkaError


def test_the_codes_have_no_gap() -> None:
    assert sorted(ErrorCode) == list(range(-1, 134))


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (-1, "UNKNOWN_SERVER_ERROR"),
        (0, "NONE"),
        (3, "UNKNOWN_TOPIC_OR_PARTITION"),
        (27, "REBALANCE_IN_PROGRESS"),
        (35, "UNSUPPORTED_VERSION"),
        (45, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        (79, "MEMBER_ID_REQUIRED"),
        (87, "INVALID_RECORD"),
        (100, "UNKNOWN_TOPIC_ID"),
        (133, "SHARE_SESSION_LIMIT_REACHED"),
    ],
)
def test_codes_and_names_belong_together(code: int, name: str) -> None:
    assert ErrorCode(code).name == name


def test_an_error_tells_its_code_and_the_detail_if_there_is_one() -> None:
    problem = KafkaError(ErrorCode.INVALID_CONFIG, "x is no number")
    assert (problem.code, problem.detail) == (ErrorCode.INVALID_CONFIG, "x is no number")
    assert str(problem) == "INVALID_CONFIG: x is no number"
    assert str(KafkaError(ErrorCode.NOT_COORDINATOR)) == "NOT_COORDINATOR"
