"""Writes the hourly records of instances: figures are taken each minute, kept in a file, and written at the full hour.

The file has what was counted in the hour so far and the records that the topic does not have yet. So a broker that is killed loses at
most a minute. A record that was written just before a crash is written again with the same key and value.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from twisted.internet.defer import Deferred, DeferredLock

from kafkacompat.timers import Clock, now_ms, take_steps, yield_in_turns
from kafkacompat.usage.hours import HOUR_MS, HourlyUsage
from kafkacompat.usage.topic import RECORDS_IN_A_BATCH, USAGE_TOPIC

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from kafkacompat.timers import DelayedCall
    from kafkacompat.usage.figures import UsageFigures
    from kafkacompat.usage.topic import UsageTopic

log = logging.getLogger(__name__)

INTERVAL_MS = 60_000

Work: TypeAlias = "Callable[[], Coroutine[Deferred[Any], Any, None]]"


class StateFile(Protocol):
    """A small file that is replaced as a whole."""

    def read(self) -> Deferred[bytes | None]:
        """Return the contents; None without a file."""

    def write(self, data: bytes) -> Deferred[None]:
        """Replace the contents."""


class UsageRecorder:
    """Takes the figures of all instances until `stop`."""

    def __init__(self, node_id: int, figures: UsageFigures, topic: UsageTopic, file: StateFile, clock: Clock) -> None:
        self._figures = figures
        self._topic = topic
        self._file = file
        self._clock = clock
        self._hours = HourlyUsage(node_id, now_ms(clock))
        self._lock = DeferredLock()
        self._next: DelayedCall | None = None
        self._is_stopped = False

    def start(self) -> None:
        """Continue with the kept state, and take figures from now on."""
        self._run(self._load_and_write)

    def stop(self) -> Deferred[None]:
        """Take the figures once more and keep them; fires when that is on the disk, or has failed."""
        self._is_stopped = True
        if self._next is not None:
            self._next.cancel()
            self._next = None
        return self._run_alone(self._take_and_keep).addErrback(_log_failure)

    def _run(self, work: Work) -> None:
        self._next = None
        self._start_work(work).addCallback(lambda _: self._schedule())

    def _start_work(self, work: Work) -> Deferred[None]:
        """Start work; a failure is logged."""
        return Deferred.fromCoroutine(work()).addErrback(_log_failure)

    def _schedule(self) -> None:
        """Take the next figures in a minute, or at the full hour if that is sooner."""
        if not self._is_stopped:
            at_ms = now_ms(self._clock)
            delay_ms = min(INTERVAL_MS, HOUR_MS - at_ms % HOUR_MS)
            self._next = self._clock.callLater(delay_ms / 1000, self._run, self._take_and_write)

    def _run_alone(self, work: Work) -> Deferred[None]:
        """Run work that uses the state and the file after other such work."""
        running: Deferred[None] = self._lock.run(lambda: Deferred.fromCoroutine(work()))
        return running

    async def _load_and_write(self) -> None:
        await self._run_alone(self._load)
        await self._take_and_write()

    async def _load(self) -> None:
        data = await self._file.read()
        if data is not None:
            try:
                self._hours.load(data, now_ms(self._clock))
            except ValueError as problem:
                log.error("The kept usage of instances cannot be read, and this hour's begins anew: %s", problem)

    async def _take_and_keep(self) -> None:
        """Take the figures, close the hour if it has ended, and keep all that."""
        hours, at_ms = self._hours, now_ms(self._clock)
        names = self._figures.list_names()
        async for name in yield_in_turns(self._clock, names):
            usage = self._figures.read(name)
            if usage is not None:
                hours.note(name, usage, at_ms)
        hours.forget_absent(set(names))
        if hours.is_over(at_ms):
            await take_steps(self._clock, hours.close_hour(at_ms))
        await self._keep()

    async def _keep(self) -> None:
        lines: list[bytes] = []
        await take_steps(self._clock, self._hours.save(lines))
        try:
            await self._file.write(b"".join(lines))
        except Exception as problem:
            # The records go to the topic all the same; a crash now would lose more than a minute.
            log.warning("The usage of instances cannot be kept in its file for now: %s", problem)

    async def _take_and_write(self) -> None:
        await self._run_alone(self._take_and_keep)
        unwritten = self._hours.unwritten
        if not unwritten:
            return
        while unwritten and not self._is_stopped:
            batch = unwritten[:RECORDS_IN_A_BATCH]
            try:
                await self._topic.write(batch, now_ms(self._clock))
            except Exception as problem:
                # The records stay in the file; the next minute tries again.
                log.warning("Cannot write %d records to %s yet: %s", len(unwritten), USAGE_TOPIC, problem)
                return
            if self._is_stopped:
                return
            del unwritten[: len(batch)]
        if not self._is_stopped:
            await self._run_alone(self._keep)


def _log_failure(failure: Failure) -> None:
    log.error("Cannot record the usage of instances", exc_info=failure.value)
