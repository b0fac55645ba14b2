"""A folder that is built once: whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_integration.maven import MissingProgramError, build_once, program


def test_folder_is_built_once(tmp_path: Path) -> None:
    target, calls = tmp_path / "jars" / "kafka", []

    def build(folder: Path) -> None:
        calls.append(folder)
        (folder / "a.jar").write_text("jar")

    build_once(target, build)
    build_once(target, build)
    assert len(calls) == 1
    assert [path.name for path in target.iterdir()] == ["a.jar"]


def test_failed_build_leaves_nothing_that_looks_built(tmp_path: Path) -> None:
    target = tmp_path / "kafka"

    def fail(folder: Path) -> None:
        (folder / "half.jar").write_text("ha")
        raise OSError("no network")

    with pytest.raises(OSError, match="no network"):
        build_once(target, fail)
    assert [path.name for path in tmp_path.iterdir()] == ["kafka.lock"]


def test_missing_program_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingProgramError, match="mvn is not on the PATH: install Apache Maven"):
        program("mvn")
