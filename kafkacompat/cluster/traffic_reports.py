"""A broker's reports of instances' traffic to the controller, and the shares that it gets for them.

A report is due an interval after the answer to the last one, and sooner if few instances are used, or clients begin to wait. Without an
answer the shares stay, and after `HOLD_MS` they decay.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred

from kafkacompat.client.errors import RequestNotSentError, UnsupportedRequestError
from kafkacompat.cluster.controller_link import NoBrokerError, NoControllerError
from kafkacompat.tenancy.traffic.control import find_hurried_ms, find_report_delay_ms
from kafkacompat.tenancy.traffic.master import FlowShare, FlowUsage
from kafkacompat.timers import Clock, steady_ms, take_steps
from kafkacompat.wire.apis.report_traffic import ReportedTraffic, ReportTrafficRequest, ReportTrafficResponse
from kafkacompat.wire.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafkacompat.cluster.controller_link import ControllerLink
    from kafkacompat.cluster.led_partitions import LedPartitions
    from kafkacompat.tenancy.traffic.control import TrafficControl
    from kafkacompat.timers import DelayedCall

log = logging.getLogger(__name__)

TIMEOUT_INTERVALS = 2
FAILURES_SAID = 4
"""Reports without an answer, one after the other, that are worth a line: a broker starts before it knows the controller."""
NOT_HANDLED = (NoBrokerError, NoControllerError, RequestNotSentError)
"""Failures after which the master has certainly not seen a report."""


class TrafficReports:
    """Reports the use of *control*'s instances while any has a limit. *find_epoch* returns the broker's epoch."""

    def __init__(
        self,
        node_id: int,
        find_epoch: Callable[[], int],
        link: ControllerLink,
        control: TrafficControl,
        partitions: LedPartitions,
        clock: Clock,
        interval_ms: int,
    ) -> None:
        self._node_id = node_id
        self._find_epoch = find_epoch
        self._link = link
        self._control = control
        self._partitions = partitions
        self._clock = clock
        self._interval_ms = interval_ms
        self._last_entries = 0
        self._reported_ms = 0
        self._next: DelayedCall | None = None
        self._is_reporting = False
        self._is_stopped = False
        self._was_answered = True
        self._failures = 0
        self._is_unsupported = False
        control.on_held_back = self.hurry

    def start(self) -> None:
        """Report from now on, if there is a limit and reports have not begun."""
        if self._next is None and not self._is_reporting and not self._is_stopped and self._control.has_limits:
            self._schedule(0)

    def stop(self) -> None:
        """Report no more."""
        self._is_stopped = True
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def hurry(self) -> None:
        """Report soon: clients have begun to wait."""
        now_ms = self._now_ms()
        soon_s = (find_hurried_ms(now_ms, self._reported_ms, self._interval_ms) - now_ms) / 1000
        if self._next is not None and self._next.getTime() > self._clock.seconds() + soon_s:
            self._next.reset(soon_s)

    def _schedule(self, delay_s: float) -> None:
        self._next = self._clock.callLater(delay_s, self._begin_report)

    def _begin_report(self) -> None:
        self._next = None
        self._is_reporting = True
        Deferred.fromCoroutine(self._report()).addErrback(
            lambda failure: log.error("Cannot report the traffic of instances", exc_info=failure.value)
        ).addBoth(self._end_report)

    def _end_report(self, _: object) -> None:
        self._is_reporting = False
        if not self._is_stopped and self._control.has_limits:
            self._schedule(find_report_delay_ms(self._last_entries, self._interval_ms) / 1000)

    async def _report(self) -> None:
        usages: list[FlowUsage] = []
        await self._take(self._partitions.count())
        await self._take(self._control.measure(self._now_ms(), usages, gives_back=self._was_answered))
        self._last_entries, self._reported_ms = len(usages), self._now_ms()
        request = ReportTrafficRequest(
            broker_id=self._node_id,
            broker_epoch=self._find_epoch(),
            traffic=[
                ReportedTraffic(
                    instance=entry.instance,
                    direction=entry.direction,
                    used=entry.usage.used,
                    held_back=entry.usage.held_back,
                    share=entry.usage.share,
                )
                for entry in usages
            ],
        )
        try:
            response = await self._link.send(request, TIMEOUT_INTERVALS * self._interval_ms / 1000)
        except UnsupportedRequestError as problem:
            await self._do_without(problem)
        except Exception as problem:
            if isinstance(problem, NOT_HANDLED):
                self._control.take_back(self._now_ms())
            await self._bear_silence(problem)
        else:
            await self._handle(response)

    async def _handle(self, response: ReportTrafficResponse) -> None:
        if response.error_code:
            # The controller has refused the report as a whole.
            self._control.take_back(self._now_ms())
            await self._bear_silence(ErrorCode(response.error_code).name)
            return
        if self._failures >= FAILURES_SAID:
            log.info("The controller divides the traffic of instances again")
        self._was_answered, self._is_unsupported, self._failures = True, False, 0
        self._control.apply(
            [FlowShare(entry.instance, entry.direction, entry.share) for entry in response.shares], self._now_ms()
        )

    async def _bear_silence(self, reason: object) -> None:
        self._failures += 1
        if self._failures == FAILURES_SAID:
            log.warning("No traffic master answers, and the shares of instances stay for a while: %s", reason)
        self._was_answered = False
        await self._take(self._control.decay(self._now_ms()))

    async def _do_without(self, reason: object) -> None:
        """Take the static shares: the controller is a broker that does not know this request, such as one of Kafka."""
        if not self._is_unsupported:
            log.warning(
                "The controller divides no traffic of instances; each broker keeps to its static share: %s", reason
            )
        self._is_unsupported, self._was_answered = True, False
        await self._take(self._control.use_static(self._now_ms()))

    async def _take(self, steps: Iterator[None]) -> None:
        await take_steps(self._clock, steps)

    def _now_ms(self) -> int:
        return steady_ms(self._clock)
