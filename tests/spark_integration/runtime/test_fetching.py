"""Fetching of jars: the files for Maven and Ivy, Java's releases, and messages of failures."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

from spark_integration.errors import PipelineError
from spark_integration.runtime import fetching
from spark_integration.runtime.fetching import (
    check_java,
    find_java,
    first_complaint,
    jar_folders,
    parse_java_release,
    read_java_version,
    render_ivy_file,
    render_pom,
)
from spark_integration.runtime.packages import SparkInstallation

WANTED = ("org.apache.kafka:kafka-clients:3.9.1", "org.apache.commons:commons-pool2:2.12.0")
POM = "{http://maven.apache.org/POM/4.0.0}"
SPARK_4 = SparkInstallation("4.0.0", "2.13", Path("jars"))
SPARK_3 = SparkInstallation("3.5.1", "2.12", Path("jars"))


def make_program(folder: Path, name: str, script: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return tmp_path / "cache" / "kafkacompat" / "spark"


def test_pom_names_the_jars_and_nothing_that_they_need() -> None:
    dependencies = ElementTree.fromstring(render_pom(WANTED)).findall(f"{POM}dependencies/{POM}dependency")
    named = [
        ":".join(str(dependency.findtext(f"{POM}{tag}")) for tag in ("groupId", "artifactId", "version"))
        for dependency in dependencies
    ]
    assert named == list(WANTED)
    for dependency in dependencies:
        exclusion = dependency.find(f"{POM}exclusions/{POM}exclusion")
        assert exclusion is not None
        assert [child.text for child in exclusion] == ["*", "*"]


def test_ivy_file_names_the_jars_and_nothing_that_they_need() -> None:
    dependencies = ElementTree.fromstring(render_ivy_file(WANTED)).findall("dependencies/dependency")
    named = [":".join(dependency.attrib[key] for key in ("org", "name", "rev")) for dependency in dependencies]
    assert named == list(WANTED)
    assert {dependency.attrib["transitive"] for dependency in dependencies} == {"false"}


@pytest.mark.parametrize(
    ("output", "release"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx="y"\nopenjdk version "21-ea" 2023-09-19', 21),
    ],
)
def test_release_of_java(output: str, release: int) -> None:
    assert parse_java_release(output) == release


def test_java_without_a_release_is_reported() -> None:
    with pytest.raises(PipelineError, match="java -version answers 'segmentation fault': install a JDK 17"):
        parse_java_release("segmentation fault\n")


def test_java_home_goes_before_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    on_path = make_program(tmp_path / "path", "java", "")
    of_home = make_program(tmp_path / "home" / "bin", "java", "")
    monkeypatch.setenv("PATH", str(on_path.parent))
    assert find_java() == str(on_path)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert find_java() == str(of_home)


def test_missing_java_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PipelineError, match="java is not on the PATH and JAVA_HOME is not set: install a JDK 17"):
        find_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(PipelineError, match=rf"JAVA_HOME \({tmp_path}\) holds no bin/java: install a JDK 17"):
        find_java()


@pytest.mark.parametrize(
    ("version", "spark", "fits"),
    [
        ("17.0.15", SPARK_4, True),
        ("11.0.2", SPARK_4, False),
        ("25.0.1", SPARK_4, False),
        ("11.0.2", SPARK_3, True),
        ("1.8.0_402", SPARK_3, True),
        ("25.0.1", SparkInstallation("4.2.0", "2.13", Path("jars")), True),
    ],
)
def test_an_unfit_java_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, spark: SparkInstallation, fits: bool
) -> None:
    monkeypatch.setattr(
        fetching, "find_java", lambda: str(make_program(tmp_path, "java", f"echo 'version \"{version}\"' >&2"))
    )
    if fits:
        assert check_java(spark, read_java_version()) == parse_java_release(f'version "{version}"')
        return
    with pytest.raises(
        PipelineError, match=rf"Spark 4.0.0 runs on Java 17 to 22, and .* is Java {version[:2]}: install"
    ):
        check_java(spark, read_java_version())


@pytest.mark.parametrize(
    ("output", "complaint"),
    [
        (
            "[INFO] x\n[\x1b[1;31mERROR\x1b[m] Failed: Could not find artifact a:b:jar:1 in central\n[ERROR] more",
            "Failed: Could not find artifact a:b:jar:1 in central",
        ),
        (
            "[ERROR] No plugin found for prefix 'dependency' -> [Help 1]\n[ERROR] \n[ERROR] To see the full stack",
            "No plugin found for prefix 'dependency'",
        ),
        (":: problems summary ::\n\t\t:: a#b;1: not found\n", "a#b;1: not found"),
        ("", "it gives no reason"),
    ],
)
def test_complaint_is_the_first_line_that_complains(output: str, complaint: str) -> None:
    assert first_complaint(output) == complaint


def fetch_by(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> Sequence[Path]:
    """Fetch with a program mvn that runs *script*, in which FOLDER stands for the folder of the jars."""
    find = 'for each in "$@"; do case $each in -DoutputDirectory=*) FOLDER=${each#*=};; esac; done; '
    mvn = make_program(tmp_path / "bin", "mvn", find + script)
    monkeypatch.setenv("PATH", f"{mvn.parent}:/usr/bin:/bin")
    return jar_folders(SPARK_4, ["kafka"])


def test_jars_are_fetched_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_cache: Path) -> None:
    (folder,) = fetch_by(monkeypatch, tmp_path, "touch $FOLDER/a.jar")
    assert folder.parent == own_cache
    assert [path.name for path in folder.iterdir()] == ["a.jar"]
    assert list(fetch_by(monkeypatch, tmp_path, "exit 1")) == [folder]


def test_a_failed_fetch_is_reported_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_cache: Path
) -> None:
    with pytest.raises(PipelineError) as refusal:
        fetch_by(monkeypatch, tmp_path, "touch $FOLDER/half.jar; echo '[ERROR] Unknown host repo.example'; exit 1")
    assert str(refusal.value) == (
        "mvn could not fetch org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0 and what goes with it from Maven Central "
        "(Unknown host repo.example): is this machine online?"
    )
    assert [path.suffix for path in own_cache.iterdir()] == [".lock"]


def test_an_unwritable_cache_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(
        PipelineError, match=r"jars cannot be kept in .*kafkacompat/spark .*: set XDG_CACHE_HOME to a folder"
    ):
        fetch_by(monkeypatch, tmp_path, "")
