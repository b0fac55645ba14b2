"""``python -m compat_tests.spark.archive_tables FORMAT BOOTSTRAP TOPIC FOLDER``: test archives in tables.

A session has the jars of a format from its start on, so this is a process of its own. It fails if a case fails.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import pytest

from compat_tests.confluent import admin_of
from compat_tests.spark.archives import assert_the_same, produce_all_kinds, read_held, run_archive
from compat_tests.spark.scene import Scene
from spark_integration.archive.ledger import ArchiveLedger
from spark_integration.archive.tables import TableStore
from spark_integration.errors import PipelineError
from spark_integration.session import start_session
from spark_integration.state.archives import read_manifest
from spark_integration.state.manifest import ArchiveCommit, DataFile


@dataclass(frozen=True)
class Address:
    """A broker that another process runs."""

    bootstrap: str


def count_rows(scene: Scene, form: str) -> int:
    """Count the rows for readers that ignore the manifest."""
    count: int = scene.session.read.format(form).load(str(scene.folder / "archive")).count()
    return count


def added_later(scene: Scene, form: str) -> None:
    """Archive from the middle first, then from the beginning: each end is counted by itself."""
    scene.create(1)
    produce_all_kinds(scene.broker, scene.topic, 30, 1)
    run_archive(scene, format=form, startingOffsets=f'{{"{scene.topic}":{{"0":10}}}}')
    produce_all_kinds(scene.broker, scene.topic, 10, 1, first=30)
    summary = run_archive(scene, "other", format=form)
    assert (summary.records, summary.offsets_there_already) == (20, 20)
    ranges = read_manifest(scene.session, str(scene.folder / "archive")).ranges
    assert sorted(span[3:] for span in ranges) == [(0, 10, 10, 0, 9), (10, 30, 20, 10, 29), (30, 40, 10, 30, 39)]
    assert_the_same(scene)
    assert count_rows(scene, form) == 40


def raise_refusal(*_: Any) -> None:
    raise PipelineError("not today")


def killed_behind_its_append(scene: Scene, form: str) -> None:
    """Records are not read before the manifest names them, and are found even if the table has lost its history."""
    scene.create(2)
    produce_all_kinds(scene.broker, scene.topic, 20, 2)
    with patch.object(ArchiveLedger, "_close", raise_refusal), pytest.raises(PipelineError, match="not today"):
        run_archive(scene, format=form)
    assert count_rows(scene, form) == 40
    assert read_held(scene).count() == 0
    produce_all_kinds(scene.broker, scene.topic, 5, 2, first=20)
    store = next(candidate for candidate in TableStore.__subclasses__() if candidate.format == form)
    with patch.object(store, "has", lambda *_: False):
        assert run_archive(scene, "new", format=form).records == 10
    assert count_rows(scene, form) == 50
    assert_the_same(scene)


def made_anew_while_it_is_read(scene: Scene, form: str) -> None:
    scene.create(1)
    produce_all_kinds(scene.broker, scene.topic, 20, 1)
    publish = TableStore.publish

    def slowly(self: TableStore, frame: Any, commit: ArchiveCommit, new: Sequence[DataFile]) -> ArchiveCommit:
        admin_of(scene.broker).delete_topics([scene.topic])[scene.topic].result(30)
        scene.create(1)
        produce_all_kinds(scene.broker, scene.topic, 20, 1)
        return publish(self, frame, commit, new)

    with patch.object(TableStore, "publish", slowly), pytest.raises(PipelineError, match="recreated"):
        run_archive(scene, format=form)
    assert read_held(scene).count() == 0
    with pytest.raises(PipelineError, match="recreated"):
        run_archive(scene, "new", format=form)


CASES: tuple[Callable[[Scene, str], None], ...] = (added_later, killed_behind_its_append, made_anew_while_it_is_read)


def main(form: str, bootstrap: str, topic: str, folder: str) -> None:
    """Run every case, each with a topic and a folder of its own."""
    broker = cast(Any, Address(bootstrap))
    spark = start_session("archive-tables", master="local[2]", memory="768m", packages=[form], shuffle_partitions=2)
    for case in CASES:
        print(case.__name__, flush=True)
        (path := Path(folder) / case.__name__).mkdir()
        case(Scene(spark, broker, f"{topic}-{case.__name__}", path), form)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
