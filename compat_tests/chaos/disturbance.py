"""Carries out a plan of faults in a thread of its own, while the clients of a run are at work."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

from compat_tests.chaos.faults import FAULTS
from compat_tests.chaos.plan import PlannedFault
from compat_tests.chaos.world import FaultWorld
from kafkacompat.history.broker import RunError
from kafkacompat.history.client import now_ns
from kafkacompat.history.events import Faulted, encode_event

NAME = "chaos.0"
"""The client name of the events of faults."""

LONGEST_RECOVERY_SECONDS = 60.0


class PlannedFaults:
    """The faults of a plan, one after the other; each is healed before the next one begins."""

    def __init__(self, plan: Sequence[PlannedFault], world: FaultWorld, recording: Path) -> None:
        self._plan = plan
        self._world = world
        self._recording = recording
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="faults")
        self._error: BaseException | None = None
        self.problems: list[str] = []
        """Brokers that ended by themselves, and replicas that did not recover."""

    def begin(self) -> None:
        """Begin the plan now."""
        self._thread.start()

    def advance(self) -> None:
        """Raise RunError if a fault could not be made or healed."""
        if self._error is not None:
            raise RunError(f"the plan cannot continue: {self._error!r}") from self._error

    @property
    def is_over(self) -> bool:
        """Whether all faults are healed and all replicas had time to recover."""
        return not self._thread.is_alive() and self._error is None

    def stop(self) -> None:
        """End the present fault, and make no others."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        begun_s = time.monotonic()
        try:
            for planned in self._plan:
                self._stop.wait(max(begun_s + planned.at_s - time.monotonic(), 0))
                if self._stop.is_set():
                    return
                self._make(planned)
            if not self._world.wait_for(self._is_recovered, LONGEST_RECOVERY_SECONDS):
                self.problems.append(
                    f"not all replicas are in sync {LONGEST_RECOVERY_SECONDS:g} s after the last fault"
                )
        except BaseException as problem:
            self._error = problem

    def _make(self, planned: PlannedFault) -> None:
        begun_ns = now_ns()
        with FAULTS[planned.fault](self._world, **planned.arguments) as target:
            print(f"{planned.fault}: {target}, {planned.lasts_s:g} s", flush=True)
            self._stop.wait(planned.lasts_s)
        self._revive(planned.fault)
        with self._recording.open("ab") as part:
            part.write(encode_event(Faulted(now_ns(), NAME, planned.fault, target, begun_ns)))

    def _revive(self, fault: str) -> None:
        self.problems += [f"{ended} during or after {fault!r}" for ended in self._world.cluster.revive()]

    def _is_recovered(self) -> bool:
        return self._stop.is_set() or self._world.roles.in_sync()
