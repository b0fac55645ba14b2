"""Requests of old controllers, and for old starts of a broker."""

from __future__ import annotations

import pytest

from kafkacompat.cluster.fence import UNKNOWN_EPOCH, ControllerFence
from kafkacompat.wire.errors import ErrorCode


@pytest.mark.parametrize(
    ("controller_epoch", "broker_epoch", "expected"),
    [
        (5, 70, ErrorCode.NONE),
        (6, 70, ErrorCode.NONE),
        (5, 71, ErrorCode.NONE),  # the broker registered again, and does not know it yet
        (5, UNKNOWN_EPOCH, ErrorCode.NONE),
        (4, 70, ErrorCode.STALE_CONTROLLER_EPOCH),
        (4, UNKNOWN_EPOCH, ErrorCode.STALE_CONTROLLER_EPOCH),
        (6, 69, ErrorCode.STALE_BROKER_EPOCH),
        (4, 69, ErrorCode.STALE_BROKER_EPOCH),
    ],
)
def test_only_the_newest_controller_is_obeyed(controller_epoch: int, broker_epoch: int, expected: ErrorCode) -> None:
    fence = ControllerFence(lambda: 70)
    assert fence.check_request(5, 70) == ErrorCode.NONE
    assert fence.check_request(controller_epoch, broker_epoch) == expected
    assert fence.controller_epoch == (controller_epoch if expected == ErrorCode.NONE else 5)
