"""The threads of a disk: one thing after the other, and several files at once where that is asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, cast

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.disk import HELPERS, DiskThread
from tests.kafkacompat.metadata.deferreds import outcome


class Reactor:
    """Keeps what threads want to be called, until the test calls it."""

    def __init__(self) -> None:
        self._calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []

    def callFromThread(self, function: Callable[..., Any], *args: Any) -> None:
        self._calls.append((function, args))

    def turn(self) -> None:
        for function, args in self._calls:
            function(*args)


class World:
    def __init__(self) -> None:
        self.reactor = Reactor()
        self.disk = DiskThread(cast(Any, self.reactor), "a")

    def outcome(self, deferred: Deferred[Any]) -> Any:
        """The result, once the disk has ended."""
        self.disk.close()
        self.reactor.turn()
        return outcome(deferred)


def test_several_things_happen_at_the_same_time_and_the_next_begins_after_them() -> None:
    world = World()
    met = threading.Barrier(3, timeout=10)
    done: list[int] = []

    def meet(number: int) -> None:
        met.wait()  # raises unless all three are here
        done.append(number)

    world.disk.run_each(meet, [1, 2, 3])
    assert sorted(world.outcome(world.disk.run(lambda: list(done)))) == [1, 2, 3]


def test_one_thing_alone_needs_no_other_thread() -> None:
    world = World()
    names: list[str] = []
    alone = world.disk.run_each(lambda _: names.append(threading.current_thread().name), [1])
    world.outcome(alone)
    assert names[0].startswith("disk a")


def test_nothing_is_under_way_any_more_when_one_has_failed() -> None:
    world = World()
    done: list[int] = []

    def fail_first(number: int) -> None:
        if number == 0:
            raise OSError("broken")
        done.append(number)

    failing = world.disk.run_each(fail_first, range(10 * HELPERS))
    with pytest.raises(OSError, match="broken"):
        world.outcome(failing)
    # Only those that the same thread was to do behind it are not done.
    assert sorted(done) == [number for number in range(10 * HELPERS) if number % HELPERS]
