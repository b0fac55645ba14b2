"""Every operation of a life's file system as a crash point, each in several ways."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from tests.crash.life import Life
from tests.fakes.power_failures import Survivors

KILLED = "killed"
WAYS = {
    KILLED: ("all", "all"),
    "nothing survives": ("none", "none"),
    "no name survives": ("none", "all"),
    "no contents survive": ("all", "none"),
    "the first survive": ("first", "first"),
    "any survive, torn": ("any", "torn"),
    "any survive, torn otherwise": ("any", "torn"),
}
"""What a crash leaves -> which names and which contents survive (power_failures.py)."""


class Crash(NamedTuple):
    """One crash: life, operation, and the kind of loss."""

    seed: int
    steps: int
    point: int
    way: str

    def command(self) -> str:
        """Return the command line that repeats this crash."""
        return f"python -m tests.crash --seed {self.seed} --steps {self.steps} --point {self.point} --way '{self.way}'"


@dataclass
class Tally:
    """The numbers of crash points and states of the disk, and the anomalies."""

    points: int = 0
    states: int = 0
    operations: Counter[str] = field(default_factory=Counter)
    anomalies: list[tuple[Crash, str]] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Add the counts of another tally."""
        self.points += other.points
        self.states += other.states
        self.operations += other.operations
        self.anomalies += other.anomalies

    def note_anomaly(self, crash: Crash, problem: Exception) -> None:
        """Note an anomaly."""
        self.anomalies.append((crash, f"{type(problem).__name__}: {problem}"))


class CrashPoints:
    """Lets one life crash at its operations, one in `stride` of them, in all ways; or at one `point` in one `way`."""

    def __init__(self, seed: int, steps: int, stride: int = 1) -> None:
        self.tally = Tally()
        self._crash_0 = Crash(seed, steps, 0, "alive")
        self._stride = stride

    def all(self) -> Tally:
        """Crash again and again."""

        def crash(life: Life, crash: Crash, operation: str) -> None:
            if crash.point % self._stride == crash.seed % self._stride:
                self.tally.points += 1
                self.tally.operations[operation] += 1
                self._crash_in_all_ways(life, crash)

        return self._live(crash)

    def crash_once(self, point: int, way: str) -> Tally:
        """Crash once."""

        def crash(life: Life, crash: Crash, _: str) -> None:
            if crash.point == point:
                self._crash(life, crash._replace(way=way), set())

        return self._live(crash)

    def _live(self, at_each_point: Callable[[Life, Crash, str], None]) -> Tally:
        crash = self._crash_0

        def at_each_operation(life: Life, operation: str) -> None:
            nonlocal crash
            crash = crash._replace(point=crash.point + 1)
            at_each_point(life, crash, operation)

        try:
            Life(crash.seed, crash.steps, at_each_operation).live()
        except Exception as problem:
            self.tally.note_anomaly(crash, problem)
        return self.tally

    def _crash_in_all_ways(self, life: Life, crash: Crash) -> None:
        seen: set[int] = set()
        for way in WAYS:
            self._crash(life, crash._replace(way=way), seen)

    def _crash(self, life: Life, crash: Crash, seen: set[int]) -> None:
        rng = Random(repr(crash))
        files = life.files.killed() if crash.way == KILLED else life.files.after(Survivors(*WAYS[crash.way], rng))
        left = files.fingerprint()
        if left in seen:
            return
        seen.add(left)
        self.tally.states += 1
        try:
            life.case(power_fails=crash.way != KILLED).examine(files, rng)
        except Exception as problem:
            self.tally.note_anomaly(crash, problem)
