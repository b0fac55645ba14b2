"""A broker's reports of what instances store on it to the controller, and the totals that it gets for them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from twisted.internet.defer import Deferred

from kafkacompat.timers import Clock, yield_in_turns
from kafkacompat.wire.apis.report_storage import ReportStorageRequest, ReportStorageResponse, StoredBytes
from kafkacompat.wire.errors import ErrorCode

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from kafkacompat.cluster.controller_link import ControllerLink
    from kafkacompat.timers import DelayedCall

log = logging.getLogger(__name__)

INTERVAL_S = 1.0
INSTANCES_A_SECOND = 1000
"""With more instances than these the interval grows, so that reports cost no more."""
TIMEOUT_S = 10.0


class LimitedStorage(Protocol):
    """What instances with a limit store on this broker."""

    @property
    def has_limits(self) -> bool:
        """Whether any instance has a limit, on this broker or not."""

    def measure_limited(self) -> Mapping[str, int]:
        """Return the stored bytes by instance."""

    def note_total(self, instance: str, total_bytes: int, reported_bytes: int) -> None:
        """Note the bytes on all brokers, to which this broker had reported *reported_bytes*."""


class StorageReports:
    """Reports the *storage* of instances while any has a limit. *find_epoch* returns the broker's epoch."""

    def __init__(
        self, node_id: int, find_epoch: Callable[[], int], link: ControllerLink, storage: LimitedStorage, clock: Clock
    ) -> None:
        self._node_id = node_id
        self._find_epoch = find_epoch
        self._link = link
        self._storage = storage
        self._clock = clock
        self._next: DelayedCall | None = None
        self._is_reporting = False
        self._is_stopped = False
        self._was_answered = True

    def start(self) -> None:
        """Report from now on, if there is a limit and reports have not begun."""
        if self._next is None and not self._is_reporting and not self._is_stopped and self._storage.has_limits:
            self._next = self._clock.callLater(0, self._begin)

    def stop(self) -> None:
        """Report no more."""
        self._is_stopped = True
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _begin(self) -> None:
        self._next = None
        self._is_reporting = True
        stored = dict(self._storage.measure_limited())
        Deferred.fromCoroutine(self._report(stored)).addErrback(self._bear_silence).addBoth(self._end, len(stored))

    def _end(self, _: object, count: int) -> None:
        self._is_reporting = False
        # Without a limit no report is needed; a change of instances starts the reports again.
        if self._storage.has_limits and not self._is_stopped:
            delay_s = max(INTERVAL_S, count / INSTANCES_A_SECOND)
            self._next = self._clock.callLater(delay_s, self._begin)

    async def _report(self, stored: Mapping[str, int]) -> None:
        """Report also nothing: the controller waits for the reports of all brokers."""
        request = ReportStorageRequest(
            broker_id=self._node_id,
            broker_epoch=self._find_epoch(),
            stored=[
                StoredBytes(instance=name, stored_bytes=size_bytes)
                async for name, size_bytes in yield_in_turns(self._clock, stored.items())
            ],
        )
        response: ReportStorageResponse = await self._link.send(request, TIMEOUT_S)
        if response.error_code:
            raise _ReportRefusedError(ErrorCode(response.error_code).name)
        if not self._was_answered:
            log.info("The controller adds up the storage of instances again")
        self._was_answered = True
        for total in response.totals:
            if total.instance in stored:
                self._storage.note_total(total.instance, total.stored_bytes, stored[total.instance])

    def _bear_silence(self, failure: Failure) -> None:
        """Keep the last totals: this broker's own part still counts as it changes."""
        if self._was_answered:
            text = "What instances store on other brokers counts as last reported, as no controller answers: %s"
            log.warning(text, failure.value)
        self._was_answered = False


class _ReportRefusedError(Exception):
    """The controller has refused a report."""
