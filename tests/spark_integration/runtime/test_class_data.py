"""The file of classes that a session uses."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_integration.runtime.class_data import (
    can_keep_classes,
    class_data_file,
    class_data_options,
    class_keeping_options,
)
from spark_integration.runtime.packages import SparkInstallation

SPARK = SparkInstallation("4.0.0", "2.13", Path("/spark/jars"))
JAVA = 'openjdk version "17.0.15" 2025-04-15'


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_another_java_or_class_path_has_another_file() -> None:
    folders = [Path("kafka")]
    files = {
        class_data_file(JAVA, SPARK, folders),
        class_data_file(JAVA.replace("15", "16"), SPARK, folders),
        class_data_file(JAVA, SPARK, [*folders, Path("delta")]),
        class_data_file(JAVA, SparkInstallation("4.0.0", "2.13", Path("/other/jars")), folders),
    }
    assert len(files) == 4
    assert class_data_file(JAVA, SPARK, folders) in files


def test_java_gets_an_option_for_an_existing_file() -> None:
    file = class_data_file(JAVA, SPARK, [])
    assert class_data_options(file) == []
    file.parent.mkdir(parents=True)
    file.touch()
    assert class_data_options(file)[0] == f"-XX:SharedArchiveFile={file}"
    assert f"-XX:ArchiveClassesAtExit={file}" in class_keeping_options(file)


@pytest.mark.parametrize(("version", "can"), [("1.8.0_402", False), ("11.0.2", False), ("13", True), ("17.0.15", True)])
def test_java_can_keep_its_classes_from_13_on(version: str, can: bool) -> None:
    assert can_keep_classes(f'version "{version}"') is can
