"""Folders that are built once, completely or not at all, and jars fetched by Maven."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from spark_integration.runtime import maven as maven_module
from spark_integration.runtime.maven import MissingProgramError, build_once, find_program, jar_folder


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


def test_a_missing_program_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingProgramError, match="mvn is not on the PATH: install Apache Maven"):
        find_program("mvn")


@pytest.fixture
def maven(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A Maven that prints control sequences, like the real one even when it is told to be quiet."""
    script = tmp_path / "bin" / "mvn"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\nprintf '\\033[0m\\033[0m'\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(script.parent), prepend=os.pathsep)
    monkeypatch.setattr(maven_module, "BUILD", tmp_path / "build")
    return script


def test_maven_prints_nothing_if_all_goes_well(maven: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pom = tmp_path / "pom.xml"
    pom.write_text("<project/>")
    assert jar_folder(pom).is_dir()
    assert capfd.readouterr() == ("", "")


def test_mavens_error_is_shown(maven: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    maven.write_text("#!/bin/sh\necho '[ERROR] no such artifact'\nexit 1\n")
    pom = tmp_path / "pom.xml"
    pom.write_text("<project/>")
    with pytest.raises(subprocess.CalledProcessError):
        jar_folder(pom)
    assert capfd.readouterr() == ("", "[ERROR] no such artifact\n\n")
