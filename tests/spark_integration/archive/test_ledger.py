"""An archive killed at each change of its folder, or overtaken there by another run, has each offset once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from spark_integration.archive import parquet
from spark_integration.archive.ledger import STAGING
from spark_integration.errors import PipelineError
from spark_integration.manifest import COMMITS
from tests.spark_integration.archive.memory import (
    OFFSETS,
    Folder,
    KilledError,
    Memory,
    Rows,
    live,
    manifest_of,
    named,
    seen,
)

STORES = [Folder, Rows]


def at_change(number: int, what: Callable[[], None]) -> Callable[[], None]:
    """Do *what* before the change of that number, once."""
    left = [number]

    def before_change() -> None:
        left[0] -= 1
        if left[0] == -1:
            what()

    return before_change


def killed() -> None:
    raise KilledError


def run(memory: Memory, store: Any, before_change: Callable[[], None] = lambda: None) -> None:
    memory.before_change = before_change
    for _ in live(memory, store(memory)):
        pass


def changes(store: Any) -> int:
    """Count the changes of a run that nothing happens to."""
    counted: list[None] = []
    run(Memory(), store, lambda: counted.append(None))
    return len(counted)


def assert_whole(memory: Memory, store: Any) -> None:
    assert sorted(offset for offsets in seen(memory).values() for offset in offsets) == list(range(OFFSETS))
    assert manifest_of(memory).ends() == {("t", 0): OFFSETS}
    assert not memory.names(STAGING)
    if store is Folder:
        assert named(memory) == list(range(OFFSETS))


@pytest.mark.parametrize("store", STORES)
def test_a_run_that_nothing_happens_to(store: Any) -> None:
    memory = Memory()
    run(memory, store)
    assert_whole(memory, store)


def kill(memory: Memory, store: Any, number: int) -> None:
    with pytest.raises(KilledError):
        run(memory, store, at_change(number, killed))


@pytest.mark.parametrize("store", STORES)
def test_killed_at_each_change(store: Any) -> None:
    for number in range(changes(store)):
        memory = Memory()
        kill(memory, store, number)
        if store is Folder:
            held = named(memory)
            assert held == list(range(len(held))), f"killed at change {number}"
        run(memory, store)
        assert_whole(memory, store)


@pytest.mark.parametrize("store", STORES)
def test_killed_while_what_a_kill_left_is_put_right(store: Any) -> None:
    for number in range(0, changes(store), 3):
        for again in range(0, 12, 2):
            memory = Memory()
            kill(memory, store, number)
            try:
                run(memory, store, at_change(again, killed))
            except KilledError:
                run(memory, store)
            assert_whole(memory, store)


def test_files_that_were_not_committed_are_seen_by_nobody_who_reads_the_manifest() -> None:
    unnamed = 0
    for number in range(changes(Folder)):
        memory = Memory()
        kill(memory, Folder, number)
        unnamed += len(seen(memory).keys() - {file.path for file in manifest_of(memory).files})
    assert unnamed, "no kill fell between the files and their commit"


def test_overtaken_at_each_change() -> None:
    """Another run archives all that is left; the first may commit no more, and leaves nothing of its own."""
    refused = 0
    for number in range(changes(Folder)):
        memory = Memory()

        def overtake(memory: Memory = memory) -> None:
            memory.before_change = lambda: None
            run(memory, Folder)

        try:
            run(memory, Folder, at_change(number, overtake))
        except PipelineError as problem:
            assert "another run" in str(problem)
            refused += 1
        memory.before_change = lambda: None
        assert_whole(memory, Folder)
    assert refused > changes(Folder) / 2


def test_overtaken_by_so_much_that_its_number_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "KEPT_COMMITS", 0)
    for known in (0, 1):
        memory = Memory()
        late = live(memory, Folder(memory))
        if known:
            next(late)
            run(memory, Folder)
        else:
            memory.before_change = at_change(0, partial(run, memory, Folder))
        assert len(memory.names(COMMITS)) < OFFSETS / 3
        with pytest.raises(PipelineError, match="another run"):
            for _ in late:
                pass
        assert_whole(memory, Folder)
