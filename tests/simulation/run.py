"""Runs a plan: load and faults, then repair, then what must hold in the end."""

from __future__ import annotations

import gc
import sys
import time
from collections import Counter
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tests.simulation.ending import find_unserved
from tests.simulation.faults import FAULTS
from tests.simulation.load import Load
from tests.simulation.plan import Action, Plan
from tests.simulation.planted import plant
from tests.simulation.work import Administrator
from tests.simulation.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

START_TIMEOUT_S = 60.0
HEAL_TIMEOUT_S = 120.0
LAST_REQUESTS_S = 15.0


class Outcome(NamedTuple):
    """What came of a run. ``happened`` counts faults and work by kind, ``skipped`` those that did not apply."""

    seed: int
    findings: list[str]
    happened: Counter[str]
    skipped: Counter[str]
    trace: int
    calls: int
    virtual_s: float
    cpu_s: float


def run_plan(plan: Plan, planted: str | None = None) -> Outcome:
    """Run a plan in this process, perhaps with a bug of `planted`."""
    began_s = time.process_time()
    with _no_garbage_collection(), plant(planted):
        world = World(plan.settings, plan.seed)
        with world.monitor.watching():
            _Run(world, plan).run()
            outcome = Outcome(
                plan.seed,
                list(world.findings),
                world.counts.happened,
                world.counts.skipped,
                world.timeline.trace,
                world.timeline.calls,
                world.elapsed_s,
                time.process_time() - began_s,
            )
            world.close()
    return outcome


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Collect no garbage during a run: when it is found depends on more than the seed."""
    gc.disable()
    # The coroutines of killed processes try to clean up when they are collected.
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        yield
    finally:
        sys.unraisablehook = hook
        gc.enable()


class _Run:
    def __init__(self, world: World, plan: Plan) -> None:
        self._world = world
        self._plan = plan
        self._administrator = Administrator(world)

    def run(self) -> None:
        world, settings = self._world, self._plan.settings
        if not world.start(START_TIMEOUT_S):
            world.report_unless_found(f"the brokers do not serve {START_TIMEOUT_S:g} s after their first start")
            return
        for topic in settings.topics:
            self._administrator.create_topic(topic)
        if not world.wait(self._has_topics, START_TIMEOUT_S):
            world.report_unless_found(f"the topics are not created within {START_TIMEOUT_S:g} s")
            return
        load = Load(world)
        began_s = world.elapsed_s
        for action in self._plan.actions:
            world.at(began_s + action.time_s, partial(self._act, action))
        world.advance(settings.load_s)
        world.end_faults()
        self._end(load)

    def _has_topics(self) -> bool:
        stored = self._world.stored.partitions
        return all(
            (topic.name, index) in stored for topic in self._plan.settings.topics for index in range(topic.partitions)
        )

    def _act(self, action: Action) -> None:
        world = self._world
        if action.kind in FAULTS:
            applies = FAULTS[action.kind].act(world, **action.arguments)
        else:
            applies = self._administrator.do(action.kind, action.arguments)
        (world.counts.happened if applies else world.counts.skipped)[action.kind] += 1

    def _end(self, load: Load) -> None:
        world = self._world
        if not world.wait(lambda: not find_unserved(world) and not load.list_unserved(), HEAL_TIMEOUT_S, every_s=0.5):
            for sentence in [*find_unserved(world), *load.list_unserved()]:
                world.report_unless_found(f"{HEAL_TIMEOUT_S:g} s after the faults {sentence}")
            return
        ended: list[object] = []
        load.end().addErrback(world.fail, "the clients fail to end").addBoth(ended.append)
        if not world.wait(lambda: bool(ended), HEAL_TIMEOUT_S, every_s=0.5):
            world.report_unless_found(f"the clients do not end within {HEAL_TIMEOUT_S:g} s")
            return
        world.monitor.compare_replicas()
        load.judge()
