"""Missing or damaged files and commits of an archive are reported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from compat_tests.spark.archives import read_held, run_archive
from compat_tests.spark.scene import Scene, make_values, produce_values
from spark_integration.errors import PipelineError, explain_failure


def lose_file(file: Path) -> None:
    file.unlink()


def cut_file(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-10])


def flip_bit(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 4] ^= 1
    file.write_bytes(content)
    (file.parent / f".{file.name}.crc").unlink()


@pytest.mark.spark
@pytest.mark.parametrize("damage", [lose_file, cut_file, flip_bit])
def test_a_file_that_is_missing_or_damaged_is_found(scene: Scene, damage: Callable[[Path], None]) -> None:
    scene.create(1)
    produce_values(scene.broker, scene.topic, make_values(500))
    run_archive(scene)
    file = next((scene.folder / "archive").rglob("part-*.parquet"))
    damage(file)
    with pytest.raises(Exception, match=r"missing|damaged|FAILED_READ_FILE|error while reading file") as problem:
        read_held(scene).collect()
    sentence = explain_failure(problem.value)
    assert file.name in sentence
    assert "restore it from a copy" in sentence


@pytest.mark.spark
def test_a_commit_that_is_missing_is_found(scene: Scene) -> None:
    scene.create(1)
    produce_values(scene.broker, scene.topic, make_values(30))
    run_archive(scene, maxOffsetsPerTrigger="10")
    manifest = scene.folder / "archive/_kafkacompat_archive/manifest"
    (manifest / f"{2:020d}.json").unlink()
    with pytest.raises(PipelineError, match="lacks commit 2"):
        read_held(scene)
