"""Which requests of controllers a broker obeys."""

from __future__ import annotations

from collections.abc import Callable

from kafkacompat.wire.errors import ErrorCode

UNKNOWN_EPOCH = -1
"""The broker epoch in requests of versions that have none."""


class ControllerFence:
    """Rejects the requests of replaced controllers, and those that were meant for an earlier start of this broker (KIP-380).

    ``broker_epoch`` returns this broker's epoch, the czxid of its registration. ``controller_epoch`` is the newest that a
    controller has shown.
    """

    def __init__(self, broker_epoch: Callable[[], int]) -> None:
        self._broker_epoch = broker_epoch
        self.controller_epoch = 0

    def check_request(self, controller_epoch: int, broker_epoch: int) -> ErrorCode:
        """Return NONE for a request to obey, STALE_BROKER_EPOCH or STALE_CONTROLLER_EPOCH for any other."""
        if broker_epoch != UNKNOWN_EPOCH and broker_epoch < self._broker_epoch():
            return ErrorCode.STALE_BROKER_EPOCH
        if controller_epoch < self.controller_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        self.controller_epoch = controller_epoch
        return ErrorCode.NONE
