"""Fetches jars from Maven Central: with Maven if it is installed, else with the Ivy among Spark's own jars.

Maven obeys the user's settings.xml (mirrors, proxies). Ivy needs nothing but Java. Both obey JAVA_TOOL_OPTIONS
(``-Dhttps.proxyHost=...``). Dependencies are not fetched, since Spark has them all.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

from spark_integration.errors import PipelineError
from spark_integration.runtime.maven import build_once
from spark_integration.runtime.packages import (
    RELEASES,
    SparkInstallation,
    jar_cache_folder,
    minor_release,
    package_coordinates,
)

FETCH_SECONDS = 600

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kafkacompat</groupId><artifactId>spark-jars</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
{}
  </dependencies>
</project>
"""
_POM_DEPENDENCY = """    <dependency>
      <groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
    </dependency>"""
_IVY = """<ivy-module version="2.0">
  <info organisation="kafkacompat" module="spark-jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{}
  </dependencies>
</ivy-module>
"""
_IVY_DEPENDENCY = '    <dependency org={} name={} rev={} transitive="false" conf="default->master"/>'


def find_java() -> str:
    """Return the java that Spark will start: that of JAVA_HOME, else that of the PATH; raises PipelineError."""
    home = os.environ.get("JAVA_HOME")
    path = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if path is None:
        where = f"JAVA_HOME ({home}) holds no bin/java" if home else "java is not on the PATH and JAVA_HOME is not set"
        raise PipelineError(f"{where}: install a JDK 17, which Spark runs on")
    return path


def parse_java_release(text: str) -> int:
    """Return the release in the output of ``java -version``: 17 for "17.0.15", 8 for "1.8.0_402"."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    if match is None:
        raise PipelineError(f"java -version answers {text.strip()[:200]!r}: install a JDK 17, which Spark runs on")
    return int(match.group(1))


def read_java_version() -> str:
    """Return the output of ``java -version`` of Spark's Java; raises PipelineError if there is none."""
    return subprocess.run([find_java(), "-version"], capture_output=True, text=True, timeout=60).stderr


def check_java(installation: SparkInstallation, version: str) -> int:
    """Return the release of a Java whose version is *version*; raises PipelineError if this Spark cannot run on it."""
    release = parse_java_release(version)
    fitting = RELEASES[minor_release(installation.spark)].java
    if release not in fitting:
        raise PipelineError(
            f"Spark {installation.spark} runs on Java {fitting.start} to {fitting.stop - 1}, and {find_java()} is "
            f"Java {release}: install a JDK 17 and set JAVA_HOME to it"
        )
    return release


def jar_folders(installation: SparkInstallation, packages: Sequence[str]) -> list[Path]:
    """Return a folder of jars for each package, fetched the first time; raises PipelineError if they cannot be fetched."""
    return [_jar_folder(installation, package_coordinates(installation, package)) for package in packages]


def _jar_folder(installation: SparkInstallation, wanted: Sequence[str]) -> Path:
    target = jar_cache_folder(installation, wanted)
    fetch = _fetch_with_maven if shutil.which("mvn") else _fetch_with_ivy
    try:
        build_once(target, lambda partial: fetch(installation, wanted, partial))
    except OSError as problem:
        raise PipelineError(
            f"the jars cannot be kept in {target.parent} ({problem.strerror}): set XDG_CACHE_HOME to a folder of yours"
        ) from problem
    return target


def render_pom(wanted: Sequence[str]) -> str:
    """Return a pom that names these coordinates without their dependencies."""
    return _POM.format("\n".join(_POM_DEPENDENCY.format(*coordinate.split(":")) for coordinate in wanted))


def render_ivy_file(wanted: Sequence[str]) -> str:
    """Return an ivy.xml that names these coordinates without their dependencies."""
    lines = (_IVY_DEPENDENCY.format(*map(quoteattr, coordinate.split(":"))) for coordinate in wanted)
    return _IVY.format("\n".join(lines))


def _fetch_with_maven(installation: SparkInstallation, wanted: Sequence[str], folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "pom.xml"
        path.write_text(render_pom(wanted))
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
        _run_tool("mvn", ["mvn", "-q", "-B", "-f", str(path), *goal], wanted)


def _fetch_with_ivy(installation: SparkInstallation, wanted: Sequence[str], folder: Path) -> None:
    ivy = next(iter(sorted(installation.jars.glob("ivy-*.jar"))))
    with tempfile.TemporaryDirectory() as scratch:  # Ivy's own cache is not safe between processes
        path = Path(scratch) / "ivy.xml"
        path.write_text(render_ivy_file(wanted))
        retrieve = ["-retrieve", f"{folder}/[artifact]-[revision].[ext]", "-types", "jar", "bundle"]
        command = [find_java(), "-jar", str(ivy), "-cache", f"{scratch}/cache", "-ivy", str(path), *retrieve]
        _run_tool("Ivy", command, wanted)
    _check_complete(folder, wanted)


def _check_complete(folder: Path, wanted: Sequence[str]) -> None:
    for coordinate in wanted:
        _, artifact, release = coordinate.split(":")
        if not (folder / f"{artifact}-{release}.jar").is_file():
            raise PipelineError(f"Ivy did not bring {coordinate} from Maven Central: is this machine online?")


def _run_tool(tool: str, command: Sequence[str], wanted: Sequence[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=FETCH_SECONDS)
    except subprocess.TimeoutExpired as problem:
        raise PipelineError(
            f"{tool} could not fetch {wanted[0]} in {problem.timeout:.0f} s: is this machine online?"
        ) from None
    except subprocess.CalledProcessError as problem:
        raise PipelineError(
            f"{tool} could not fetch {wanted[0]} and what goes with it from Maven Central "
            f"({first_complaint(problem.stdout + problem.stderr)}): is this machine online?"
        ) from None


def first_complaint(output: str) -> str:
    """Return the first line of Maven's or Ivy's output that names a problem, without colours and marks."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output)
    bad = re.compile(r"\[ERROR\]|not found|unresolved|exception", re.IGNORECASE)
    line = next(filter(bad.search, plain.splitlines()), "it gives no reason")
    return re.sub(r"^\s*(\[ERROR\]|:+)?\s*|\s*-> \[Help \d+\]\s*$", "", line).strip()[:300]
