"""Spark's classes as a JVM has them in memory (JEP 350), kept beside the jars: with them a short run of Spark takes 60 % of its time.

Such a file fits one Java and one class path. With any other, Java goes on as if the file were not there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from spark_integration.runtime.fetching import parse_java_release
from spark_integration.runtime.packages import SparkInstallation, cache_folder

OLDEST_JAVA = 13
"""The first one whose applications can leave such a file behind."""

# Classes too old to be kept, and files that do not fit, are nobody's concern; Java tells of them on standard output.
_SILENTLY = "-Xlog:cds*=off"
_SOON_OVER = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def class_data_file(version: str, installation: SparkInstallation, folders: Sequence[Path]) -> Path:
    """Return the file for a Java that says *version* of itself, and for a Spark with the jars of *folders*."""
    what = "\n".join([version, *map(str, (*folders, installation.jars))])
    return cache_folder() / f"classes-{hashlib.sha256(what.encode()).hexdigest()[:12]}" / "classes.jsa"


def can_keep_classes(version: str) -> bool:
    """Return whether a Java that says *version* of itself can leave its classes behind."""
    return parse_java_release(version) >= OLDEST_JAVA


def class_data_options(file: Path) -> list[str]:
    """Return what a JVM is to be told to start with *file*, if it is there."""
    return [f"-XX:SharedArchiveFile={file}", _SILENTLY] if file.exists() else []


def class_keeping_options(file: Path) -> list[str]:
    """Return what a JVM is to be told that does its work quickly, and leaves its classes behind in *file* when it ends."""
    return [*_SOON_OVER, f"-XX:ArchiveClassesAtExit={file}", _SILENTLY]
