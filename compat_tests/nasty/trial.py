"""One client on one nasty topic: it reads everything, then a last record that comes later, and is ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from compat_tests.matrix.driver import ClientError, Driver, Launch
from compat_tests.matrix.records import Record
from compat_tests.nasty.judging import compare
from compat_tests.nasty.shapes import COMMITTED, Scene, Shape
from kafkacompat.testing.nasty import ExpectedRecord

NO_END = 10**9
"""The number of records that a client is asked for: it never has them all, and reads on."""

FIRST_S, QUIET_S, LINGER_S = 24.0, 8.0, 0.3
"""How long a client may need for its first record, and may be silent afterwards; how long surplus records are waited for.

The clients' drivers give up after 25 s."""

HEAR_S = 0.1
SHOWN_WORDS = 200
OK = ""


class Client(NamedTuple):
    """A client of the matrix: its name there, how it starts, and what it has."""

    name: str
    launch: Launch
    has_timestamps: bool
    has_transactions: bool


class Reader:
    """A client while it reads a topic from the beginning."""

    def __init__(self, client: Client, bootstrap: str, stderr: Path, scene: Scene, isolation: str) -> None:
        self._client = client
        self._driver = Driver(client.launch, bootstrap, stderr)
        self._missing = scene.topic.missing
        self._driver.tell("consume", isolation, scene.topic.name, len(scene.topic.end_offsets), NO_END)
        self._taken = 0

    def read(self, expected: Sequence[ExpectedRecord], patience_s: float) -> str:
        """Wait for these records, and a moment longer; returns how the received records differ from them."""
        problem = self._wait_for(len(expected), patience_s)
        read: list[Record] = self._driver.records[self._taken :]
        self._taken = len(self._driver.records)
        difference = compare(read, expected, has_timestamps=self._client.has_timestamps, missing=self._missing)
        if problem:
            return f"{problem}; {difference}" if difference else problem
        return difference

    def _wait_for(self, count: int, patience_s: float) -> str:
        heard, wanted, last_s = self._taken, self._taken + count, time.monotonic()
        ends_s = last_s + patience_s
        try:
            while time.monotonic() < ends_s:
                self._driver.hear(HEAR_S)
                if len(self._driver.records) > heard:
                    heard, last_s = len(self._driver.records), time.monotonic()
                    ends_s = last_s + LINGER_S if heard >= wanted else max(ends_s, last_s + QUIET_S)
                elif heard >= wanted and count == 0:
                    break
        except ClientError as problem:
            return f"stopped: {str(problem)[:SHOWN_WORDS]}"
        if heard >= wanted:
            return OK
        return f"nothing more came within {ends_s - last_s:.0f} s after {heard - self._taken} of {count} records"

    def end(self) -> None:
        """End the client."""
        self._driver.end(seconds=0)


class Trial:
    """The trial on one broker; ``append_last`` appends a record to partition 0 of a topic, and returns it as consumers see it."""

    def __init__(self, kafka: Any, folder: Path, append_last: Callable[[str], ExpectedRecord]) -> None:
        self._kafka = kafka
        self._folder = folder
        self._append_last = append_last
        self._shared: dict[str, Scene] = {}
        self._count = 0

    def run(self, client: Client, shape: Shape) -> Mapping[str, str]:
        """Return the outcome for each isolation level that the client has: "" if it is right, or what it did, in words."""
        isolations = [isolation for isolation in shape.isolations if isolation != COMMITTED or client.has_transactions]
        return {isolation: self._run(client, shape, isolation) for isolation in isolations}

    def _run(self, client: Client, shape: Shape, isolation: str) -> str:
        self._count += 1
        scene = self._set(shape)
        stderr = self._folder / f"{client.name}-{self._count}.stderr"
        reader = Reader(client, self._kafka.bootstrap_servers, stderr, scene, isolation)
        try:
            return self._read(reader, scene, shape, isolation)
        except ClientError as problem:
            return f"stopped: {str(problem)[:SHOWN_WORDS]}"
        finally:
            reader.end()

    def _read(self, reader: Reader, scene: Scene, shape: Shape, isolation: str) -> str:
        expected = scene.topic.expected(committed=isolation == COMMITTED)
        if problem := reader.read(expected, FIRST_S):
            return problem
        if shape.is_shared:
            return OK
        changed = () if scene.change is None else scene.change()
        last = self._append_last(scene.topic.name)
        if problem := reader.read([*changed, last], QUIET_S):
            return f"after the existing records, {problem}"
        return OK

    def _set(self, shape: Shape) -> Scene:
        if shape.name in self._shared:
            return self._shared[shape.name]
        scene = shape.make(self._kafka.nasty, f"{shape.name.replace('_', '-')}-{self._count}")
        if shape.is_shared:
            self._shared[shape.name] = scene
        return scene
