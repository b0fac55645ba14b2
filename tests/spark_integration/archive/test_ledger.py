"""An archive that is killed or overtaken at each change of its folder has each offset once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, cast

import pytest

from spark_integration.archive import compaction, parquet
from spark_integration.archive.ledger import STAGING, ArchiveLedger, commit_path, staging_folder
from spark_integration.errors import PipelineError
from spark_integration.state.manifest import COMMITS, parse_commit
from tests.spark_integration.archive.memory import (
    OFFSETS,
    Folder,
    Forgetful,
    KilledError,
    Memory,
    Rows,
    archive_topic,
    begin_run,
    list_named,
    list_seen,
    manifest_of,
    offset_range,
)

STORES = [Folder, Rows, Forgetful]


def at_change(number: int, action: Callable[[], None]) -> Callable[[], None]:
    """Call *action* once, before the change of that number."""
    left = [number]

    def before_change() -> None:
        left[0] -= 1
        if left[0] == -1:
            action()

    return before_change


def raise_killed() -> None:
    raise KilledError


def run_archive(memory: Memory, store: Any, before_change: Callable[[], None] = lambda: None) -> None:
    memory.before_change = before_change
    for _ in archive_topic(memory, store(memory)):
        pass


def count_changes(store: Any) -> int:
    """Return the number of changes of an undisturbed run."""
    counted: list[None] = []
    run_archive(Memory(), store, lambda: counted.append(None))
    return len(counted)


def assert_whole(memory: Memory, store: Any) -> None:
    assert sorted(offset for offsets in list_seen(memory).values() for offset in offsets) == list(range(OFFSETS))
    assert manifest_of(memory).ends() == {("t", 0): OFFSETS}
    assert not memory.names(STAGING)
    if store is Folder:
        assert list_named(memory) == list(range(OFFSETS))


@pytest.mark.parametrize("store", STORES)
def test_a_run_that_nothing_happens_to(store: Any) -> None:
    memory = Memory()
    run_archive(memory, store)
    assert_whole(memory, store)


def kill_at_change(memory: Memory, store: Any, number: int) -> None:
    with pytest.raises(KilledError):
        run_archive(memory, store, at_change(number, raise_killed))


@pytest.mark.parametrize("store", STORES)
def test_killed_at_each_change(store: Any) -> None:
    for number in range(count_changes(store)):
        memory = Memory()
        kill_at_change(memory, store, number)
        if store is Folder:
            held = list_named(memory)
            assert held == list(range(len(held))), f"killed at change {number}"
        run_archive(memory, store)
        assert_whole(memory, store)


@pytest.mark.parametrize("store", STORES)
def test_a_kill_during_the_repair_of_a_kill_loses_nothing(store: Any) -> None:
    for number in range(0, count_changes(store), 3):
        for again in range(0, 12, 2):
            memory = Memory()
            kill_at_change(memory, store, number)
            try:
                run_archive(memory, store, at_change(again, raise_killed))
            except KilledError:
                run_archive(memory, store)
            assert_whole(memory, store)


def test_uncommitted_files_are_not_in_the_manifest() -> None:
    unnamed = 0
    for number in range(count_changes(Folder)):
        memory = Memory()
        kill_at_change(memory, Folder, number)
        unnamed += len(list_seen(memory).keys() - {file.path for file in manifest_of(memory).files})
    assert unnamed, "no kill fell between the files and their commit"


def test_overtaken_at_each_change() -> None:
    """Another run archives the rest; the first may commit no more, and leaves nothing behind."""
    refused = 0
    for number in range(count_changes(Folder)):
        memory = Memory()

        def overtake(memory: Memory = memory) -> None:
            memory.before_change = lambda: None
            run_archive(memory, Folder)

        try:
            run_archive(memory, Folder, at_change(number, overtake))
        except PipelineError as problem:
            assert "another run" in str(problem)
            refused += 1
        memory.before_change = lambda: None
        assert_whole(memory, Folder)
    assert refused > count_changes(Folder) / 2


def test_a_run_overtaken_by_many_commits_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "KEPT_COMMITS", 0)
    for known in (0, 1):
        memory = Memory()
        late = archive_topic(memory, Folder(memory))
        if known:
            next(late)
            run_archive(memory, Folder)
        else:
            memory.before_change = at_change(0, partial(run_archive, memory, Folder))
        assert len(memory.names(COMMITS)) < OFFSETS / 3
        with pytest.raises(PipelineError, match="another run"):
            for _ in late:
                pass
        assert_whole(memory, Folder)


def do_nothing() -> None:
    pass


def test_two_idle_runs_write_at_the_same_time() -> None:
    """Both want the same number, since neither had written when the other started; one of them is killed."""
    refused = 0
    for number in range(12):
        for other in range(12):
            memory = Memory()
            first, second = (begin_run(memory, Folder(memory)) for _ in range(2))

            def meanwhile(memory: Memory = memory, second: ArchiveLedger = second, other: int = other) -> None:
                memory.before_change = at_change(other, raise_killed)
                with pytest.raises((KilledError, PipelineError)):
                    list(archive_topic(memory, None, second))
                memory.before_change = do_nothing

            memory.before_change = at_change(number, meanwhile)
            try:
                list(archive_topic(memory, None, first))
            except PipelineError as problem:
                assert "another run" in str(problem)
                refused += 1
            run_archive(memory, Folder)
            assert_whole(memory, Folder)
    assert 12 < refused < 12 * 12


def overwrite_commit(memory: Memory, name: str) -> None:
    """Replace a commit by another run's, like a rename on a local disk that has just found the name free."""
    commit = parse_commit(memory.read(name))
    memory.held[name] = replace(commit, run_id="other", files=()).as_json()


def test_overwritten_while_it_commits() -> None:
    memory = Memory()
    late = archive_topic(memory, Folder(memory))
    memory.after_rename = lambda to: overwrite_commit(memory, to) if to.startswith(COMMITS) else None
    with pytest.raises(PipelineError, match="another run"):
        next(late)
    assert not list_seen(memory)


def test_overwritten_once_it_has_committed() -> None:
    memory = Memory()
    late = archive_topic(memory, Folder(memory))
    next(late)
    overwrite_commit(memory, f"{COMMITS}/{memory.names(COMMITS)[0]}")
    with pytest.raises(PipelineError, match="another run"):
        list(late)


@pytest.mark.parametrize("store", STORES)
def test_a_long_manifest_is_made_short(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "MANIFEST_COMMITS", 2)
    monkeypatch.setattr(parquet, "KEPT_COMMITS", 0)
    for number in range(count_changes(store)):
        memory = Memory()
        kill_at_change(memory, store, number)
        run_archive(memory, store)
        assert_whole(memory, store)
        assert len(manifest_of(memory).commits) <= 4
        assert manifest_of(memory).queries == {"query"}


def test_of_two_that_were_killed_the_one_whose_records_are_there_is_finished() -> None:
    """Both had planned offsets from 0 on; the table has the mark of the second, and nothing more of the first."""
    memory = Memory()
    store = Rows(memory)
    longer, shorter = (
        replace(begin_run(memory, store).draft("batch", "query", 0, (offset_range(0, until),)), run_id=name)
        for name, until in (("a", 6), ("b", 3))
    )
    for draft in (longer, shorter):
        memory.write_new(f"{staging_folder(draft)}/draft.json", draft.as_json())
    store.publish([0, 1, 2], shorter, [])
    assert begin_run(memory, store).covered == {("t", 0): [(0, 3)]}
    run_archive(memory, Rows)
    assert_whole(memory, Rows)


def test_a_draft_is_checked_again_when_it_is_written() -> None:
    memory = Memory()
    ledger = begin_run(memory, Rows(memory))
    draft = ledger.draft("batch", "query", 0, (offset_range(0, 3),))

    def check(_: Any) -> None:
        if list_seen(memory):
            raise PipelineError("recreated")

    with pytest.raises(PipelineError, match="recreated"):
        ledger.commit(cast(Any, [0, 1, 2]), draft, check)
    assert not memory.exists(commit_path(draft))
