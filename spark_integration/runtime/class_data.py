"""A JVM's memory image of Spark's classes (JEP 350), kept beside the jars.

With it a short run of Spark takes 60 % of its time. Such a file fits one Java and one class path; with any other, Java
ignores it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from spark_integration.runtime.fetching import parse_java_release
from spark_integration.runtime.packages import SparkInstallation, cache_folder

OLDEST_JAVA = 13
"""The first one whose applications can leave such a file behind."""

# Java reports on standard output which classes are too old to be kept, and which files do not fit; nobody needs that.
_SILENTLY = "-Xlog:cds*=off"
_SOON_OVER = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def class_data_file(version: str, installation: SparkInstallation, folders: Sequence[Path]) -> Path:
    """Return the file for a Java whose version is *version*, and a Spark with the jars of *folders*."""
    identity = "\n".join([version, *map(str, (*folders, installation.jars))])
    return cache_folder() / f"classes-{hashlib.sha256(identity.encode()).hexdigest()[:12]}" / "classes.jsa"


def can_keep_classes(version: str) -> bool:
    """Return whether a Java whose version is *version* can keep its classes."""
    return parse_java_release(version) >= OLDEST_JAVA


def class_data_options(file: Path) -> list[str]:
    """Return the options with which a JVM starts with *file*, if it exists."""
    return [f"-XX:SharedArchiveFile={file}", _SILENTLY] if file.exists() else []


def class_keeping_options(file: Path) -> list[str]:
    """Return the options of a JVM that does short work quickly, and keeps its classes in *file* when it ends."""
    return [*_SOON_OVER, f"-XX:ArchiveClassesAtExit={file}", _SILENTLY]
