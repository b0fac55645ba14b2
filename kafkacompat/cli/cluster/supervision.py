"""When processes start, start again and stop: a table for one process, and the order of all, without a process or a clock.

The caller reports events with the time in seconds and carries out the returned orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import NamedTuple

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
"""Pause before a process starts again: it doubles with each exit, up to the longest."""
STEADY_S = 60.0
"""A process that was ready for this long counts as sound: its next pause is the first one again."""
MOST_FIRST_TRIES, MOST_LATER_TRIES = 5, 20
"""Starts in a row that end before the process is ready, until it is given up: if it was never ready, and if it was.

The first five take 8 s. The later ones take 8 minutes, in which ZooKeeper or a disk may return.
"""
EXIT_BAD_CONFIG = 2
"""Exit code of a process whose configuration cannot be used: another try would end in the same way."""
STOP_S = 60.0
"""Longest time from SIGTERM to SIGKILL; a broker hands over its partitions in that time."""

EXIT_FAILED = 1


class ProcessStage(Enum):
    """The stage that a process is in."""

    WAITING = auto()
    STARTING = auto()
    READY = auto()
    PAUSING = auto()
    STOPPING = auto()
    STOPPED = auto()
    GIVEN_UP = auto()


class ProcessEvent(Enum):
    """What happens to a process, or is wanted of it."""

    START = auto()
    READY = auto()
    EXITED = auto()
    TIME = auto()
    STOP = auto()
    KILL = auto()


class ProcessAction(Enum):
    """What the caller does with a process."""

    START = auto()
    TERMINATE = auto()
    KILL = auto()
    GIVE_UP = auto()


@dataclass(frozen=True)
class ProcessLife:
    """The life of one process so far.

    ``failures`` counts the exits since it was last sound, ``failed_starts`` the starts in a row without a ready line.
    ``ready_since_s`` is None if it was never ready, ``due_s`` the end of a pause or of the patience with a stop, and
    ``exit_code`` that of the last exit; a code below 0 is a signal.
    """

    stage: ProcessStage = ProcessStage.WAITING
    failures: int = 0
    failed_starts: int = 0
    restarts: int = 0
    ready_since_s: float | None = None
    due_s: float | None = None
    exit_code: int | None = None


Step = tuple[ProcessLife, ProcessAction | None]


def _start(life: ProcessLife, _now_s: float, _code: int | None) -> Step:
    return replace(life, stage=ProcessStage.STARTING, due_s=None), ProcessAction.START


def _become_ready(life: ProcessLife, now_s: float, _code: int | None) -> Step:
    return replace(life, stage=ProcessStage.READY, failed_starts=0, ready_since_s=now_s), None


def _fail_start(life: ProcessLife, now_s: float, code: int | None) -> Step:
    failed = replace(life, failed_starts=life.failed_starts + 1)
    most_tries = MOST_FIRST_TRIES if life.ready_since_s is None else MOST_LATER_TRIES
    if code == EXIT_BAD_CONFIG or failed.failed_starts >= most_tries:
        return replace(failed, stage=ProcessStage.GIVEN_UP, exit_code=code), ProcessAction.GIVE_UP
    return _pause(failed, now_s, code)


def _fail_while_ready(life: ProcessLife, now_s: float, code: int | None) -> Step:
    is_sound = life.ready_since_s is not None and now_s - life.ready_since_s >= STEADY_S
    return _pause(replace(life, failures=0) if is_sound else life, now_s, code)


def _pause(life: ProcessLife, now_s: float, code: int | None) -> Step:
    pause_s = min(FIRST_PAUSE_S * 2.0 ** min(life.failures, 16), LONGEST_PAUSE_S)
    paused = replace(life, stage=ProcessStage.PAUSING, failures=life.failures + 1, due_s=now_s + pause_s)
    return replace(paused, exit_code=code), None


def _restart_when_due(life: ProcessLife, now_s: float, code: int | None) -> Step:
    return _start(replace(life, restarts=life.restarts + 1), now_s, code) if _is_due(life, now_s) else (life, None)


def _terminate(life: ProcessLife, now_s: float, _code: int | None) -> Step:
    return replace(life, stage=ProcessStage.STOPPING, due_s=now_s + STOP_S), ProcessAction.TERMINATE


def _kill_when_due(life: ProcessLife, now_s: float, code: int | None) -> Step:
    return _kill(life, now_s, code) if _is_due(life, now_s) else (life, None)


def _kill(life: ProcessLife, _now_s: float, _code: int | None) -> Step:
    return replace(life, stage=ProcessStage.STOPPING, due_s=None), ProcessAction.KILL


def _end(life: ProcessLife, _now_s: float, code: int | None) -> Step:
    return replace(life, stage=ProcessStage.STOPPED, due_s=None, exit_code=code), None


def _is_due(life: ProcessLife, now_s: float) -> bool:
    return life.due_s is not None and now_s >= life.due_s


Transition = Callable[[ProcessLife, float, "int | None"], Step]

TRANSITIONS: Mapping[tuple[ProcessStage, ProcessEvent], Transition] = {
    (ProcessStage.WAITING, ProcessEvent.START): _start,
    (ProcessStage.WAITING, ProcessEvent.STOP): _end,
    (ProcessStage.WAITING, ProcessEvent.KILL): _end,
    (ProcessStage.STARTING, ProcessEvent.READY): _become_ready,
    (ProcessStage.STARTING, ProcessEvent.EXITED): _fail_start,
    (ProcessStage.STARTING, ProcessEvent.STOP): _terminate,
    (ProcessStage.STARTING, ProcessEvent.KILL): _kill,
    (ProcessStage.READY, ProcessEvent.EXITED): _fail_while_ready,
    (ProcessStage.READY, ProcessEvent.STOP): _terminate,
    (ProcessStage.READY, ProcessEvent.KILL): _kill,
    (ProcessStage.PAUSING, ProcessEvent.TIME): _restart_when_due,
    (ProcessStage.PAUSING, ProcessEvent.STOP): _end,
    (ProcessStage.PAUSING, ProcessEvent.KILL): _end,
    (ProcessStage.STOPPING, ProcessEvent.TIME): _kill_when_due,
    (ProcessStage.STOPPING, ProcessEvent.EXITED): _end,
    (ProcessStage.STOPPING, ProcessEvent.KILL): _kill,
}
"""An event that is not listed for a stage changes nothing."""


def advance_life(life: ProcessLife, event: ProcessEvent, now_s: float, code: int | None = None) -> Step:
    """Return the life after *event*, and what to do with the process; *code* is the exit code of EXITED."""
    transition = TRANSITIONS.get((life.stage, event))
    return (life, None) if transition is None else transition(life, now_s, code)


class ClusterStage(Enum):
    """The stage that the processes are in together."""

    STARTING = auto()
    READY = auto()
    STOPPING = auto()
    ENDED = auto()


class ProcessOrder(NamedTuple):
    """What the caller does with the process of that name."""

    name: str
    action: ProcessAction


_NOT_RUNNING = frozenset({ProcessStage.WAITING, ProcessStage.PAUSING})
_OVER = frozenset({ProcessStage.STOPPED, ProcessStage.GIVEN_UP})


class ClusterSupervision:
    """The lives of ZooKeeper, if there is one of our own, and of the brokers.

    The brokers start together once ZooKeeper is ready. The cluster is ready once all of them are. If a process is given up
    before that, everything stops; afterwards the others go on. Brokers stop one after the other, the last one first, and
    ZooKeeper after them.
    """

    def __init__(self, brokers: Sequence[str], zookeeper: str | None) -> None:
        self._brokers = tuple(brokers)
        self._zookeeper = zookeeper
        names = self._brokers if zookeeper is None else (zookeeper, *self._brokers)
        self.lives: dict[str, ProcessLife] = dict.fromkeys(names, ProcessLife())
        self.stage = ClusterStage.STARTING
        self.exit_code = 0

    @property
    def next_due_s(self) -> float | None:
        """The next time at which `pass_time` has an effect; None if there is none."""
        return min((life.due_s for life in self.lives.values() if life.due_s is not None), default=None)

    def begin(self, now_s: float) -> list[ProcessOrder]:
        """Start the first processes."""
        return self._advance_cluster(now_s)

    def add_brokers(self, names: Iterable[str], now_s: float) -> list[ProcessOrder]:
        """Start further brokers, and those of *names* that were given up; a cluster that stops starts none."""
        if self.stage not in (ClusterStage.STARTING, ClusterStage.READY):
            return []
        added = [name for name in names if name not in self.lives or self._is(name, ProcessStage.GIVEN_UP)]
        self._brokers += tuple(name for name in added if name not in self.lives)
        self.lives.update(dict.fromkeys(added, ProcessLife()))
        return self._advance_cluster(now_s) if self.stage is ClusterStage.STARTING else self._start(added, now_s)

    def become_ready(self, name: str, now_s: float) -> list[ProcessOrder]:
        """Note that a process is ready."""
        return self._handle([name], ProcessEvent.READY, now_s)

    def exit(self, name: str, code: int, now_s: float) -> list[ProcessOrder]:
        """Note that a process ended."""
        return self._handle([name], ProcessEvent.EXITED, now_s, code)

    def pass_time(self, now_s: float) -> list[ProcessOrder]:
        """Let pauses end."""
        return self._handle(self.lives, ProcessEvent.TIME, now_s)

    def stop(self, now_s: float) -> list[ProcessOrder]:
        """Stop all processes in their order, unless that has begun."""
        if self.stage in (ClusterStage.STARTING, ClusterStage.READY):
            self.stage = ClusterStage.STOPPING
        return self._advance_cluster(now_s)

    def kill(self, now_s: float) -> list[ProcessOrder]:
        """End all processes at once."""
        if self.stage is ClusterStage.ENDED:
            return []
        self.stage = ClusterStage.STOPPING
        return self._handle(self.lives, ProcessEvent.KILL, now_s)

    def _handle(
        self, names: Iterable[str], event: ProcessEvent, now_s: float, code: int | None = None
    ) -> list[ProcessOrder]:
        orders = [order for name in names for order in self._advance_process(name, event, now_s, code)]
        return [*orders, *self._advance_cluster(now_s)]

    def _advance_process(
        self, name: str, event: ProcessEvent, now_s: float, code: int | None = None
    ) -> list[ProcessOrder]:
        self.lives[name], action = advance_life(self.lives[name], event, now_s, code)
        return [] if action is None else [ProcessOrder(name, action)]

    def _advance_cluster(self, now_s: float) -> list[ProcessOrder]:
        orders = []
        if self.stage is ClusterStage.STARTING:
            orders += self._start_next(now_s)
        elif self.stage is ClusterStage.READY and self._are_all(self._brokers, ProcessStage.GIVEN_UP):
            self._fail(EXIT_FAILED)
        if self.stage is ClusterStage.STOPPING:
            orders += self._stop_next(now_s)
        return orders

    def _start_next(self, now_s: float) -> list[ProcessOrder]:
        lost = [life for life in self.lives.values() if life.stage is ProcessStage.GIVEN_UP]
        if lost:
            is_bad_config = any(life.exit_code == EXIT_BAD_CONFIG for life in lost)
            self._fail(EXIT_BAD_CONFIG if is_bad_config else EXIT_FAILED)
            return []
        if self._are_all(self.lives, ProcessStage.READY):
            self.stage = ClusterStage.READY
            return []
        first = [] if self._zookeeper is None else [self._zookeeper]
        names = [*first, *self._brokers] if self._are_all(first, ProcessStage.READY) else first
        return self._start(names, now_s)

    def _start(self, names: Iterable[str], now_s: float) -> list[ProcessOrder]:
        return [order for name in names for order in self._advance_process(name, ProcessEvent.START, now_s)]

    def _fail(self, exit_code: int) -> None:
        self.stage = ClusterStage.STOPPING
        self.exit_code = exit_code

    def _stop_next(self, now_s: float) -> list[ProcessOrder]:
        for name, life in self.lives.items():
            if life.stage in _NOT_RUNNING:
                self._advance_process(name, ProcessEvent.STOP, now_s)
        running = [name for name in reversed(self.lives) if self.lives[name].stage not in _OVER]
        if not running:
            self.stage = ClusterStage.ENDED
            return []
        return self._advance_process(running[0], ProcessEvent.STOP, now_s)

    def _are_all(self, names: Iterable[str], stage: ProcessStage) -> bool:
        return all(self._is(name, stage) for name in names)

    def _is(self, name: str, stage: ProcessStage) -> bool:
        return self.lives[name].stage is stage
