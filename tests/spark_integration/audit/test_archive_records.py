"""The records and times that an archive's manifest names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from spark_integration.audit import archive_records as archives
from spark_integration.audit.archive_records import commit_edges, read_manifest_and_damage
from spark_integration.state.manifest import ArchiveCommit, ArchiveDescription, ArchiveManifest, DataFile, OffsetRange
from spark_integration.topics.offsets import RecordSpan


def make_commit(number: int, *ranges: tuple[int, int], kind: str = "batch") -> ArchiveCommit:
    """A commit of a partition's ranges; its time is its number times 1,000."""
    offset_ranges = tuple(
        OffsetRange("t", 0, "id", first, until, until - first, first, until - 1) for first, until in ranges
    )
    return ArchiveCommit(number, kind, "run", 1_000 * number, ranges=offset_ranges)


def make_table(*commits: ArchiveCommit) -> ArchiveManifest:
    return ArchiveManifest(ArchiveDescription("delta", ("topic", "date"), "id"), commits)


def make_files(number: int, *names: str) -> ArchiveManifest:
    """The manifest of a Parquet archive at a commit, with these files of 10 bytes."""
    files = tuple(DataFile(name, 10, (RecordSpan("t", 0, 0, 9, 10),)) for name in names)
    description = ArchiveDescription("parquet", ("topic", "date"), "id")
    return ArchiveManifest(description, (ArchiveCommit(number, "compact", "run", 0, files=files),))


def test_a_commit_adds_only_new_intervals() -> None:
    """The second commit reads from the beginning on, and the third reads everything again."""
    manifest = make_table(make_commit(1, (100, 500)), make_commit(2, (0, 600)), make_commit(3, (0, 600)))
    edges = [(edge.at, edge.unit, edge.archived_ms) for edge in commit_edges(manifest, {"t"})]
    assert sorted(edges) == [(0, 1, 2_000), (100, 0, 1_000), (500, 1, 2_000)]


def test_a_merge_no_longer_tells_when() -> None:
    manifest = make_table(make_commit(4, (0, 100), (200, 300), kind="compact"), make_commit(5, (300, 400)))
    edges = [(edge.at, edge.unit, edge.archived_ms) for edge in commit_edges(manifest, {"t"})]
    assert edges == [(0, 0, -1), (200, 1, -1), (300, 2, 5_000)]
    assert commit_edges(manifest, {"another"}) == []


def find_files(
    monkeypatch: pytest.MonkeyPatch, manifests: Sequence[ArchiveManifest], file_sizes: dict[str, int]
) -> tuple[ArchiveManifest, dict[str, Any]]:
    """Look for the files of an archive whose manifest changes with each read."""
    left = list(manifests)
    monkeypatch.setattr(archives, "read_manifest", lambda *_: left.pop(0) if len(left) > 1 else left[0])
    monkeypatch.setattr(archives, "data_file_sizes", lambda *_: file_sizes)
    spark: Any = None
    return read_manifest_and_damage(spark, "path")


def test_files_that_were_merged_meanwhile_are_not_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = make_files(1, "a", "b"), make_files(2, "ab")
    assert find_files(monkeypatch, [before, after], {"ab": 10}) == (after, {})


def test_files_that_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if a batch is added meanwhile, or other files are merged."""
    before, after = make_files(1, "a", "b"), make_files(2, "a", "b", "c")
    manifest, gone = find_files(monkeypatch, [before, after], {"b": 9, "c": 10})
    assert manifest is before
    assert {unit.where for units in gone.values() for unit in units} == {"a is missing", "b is damaged"}
    manifest, gone = find_files(monkeypatch, [make_files(1, "a", "b", "c"), make_files(2, "ab", "c")], {"ab": 10})
    assert (manifest.number, set(gone)) == (2, {"c"})
