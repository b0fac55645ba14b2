"""The jars that fit each release of Spark; a session fetches them once and keeps them in the user's cache.

Maven Central lacks some artefacts of some releases. The table names those that could be fetched, and the tests of
``make spark`` run with them; `docs/decisions/007-spark.md` says how it was made.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spark_integration.errors import PipelineError

NO_PYSPARK = "PySpark is not installed: run pip install '.[spark]' in a clone of kafkacompat"


@dataclass(frozen=True)
class SparkRelease:
    """The versions that fit one minor release of Spark (such as "4.0").

    `connectors` are the available releases of spark-sql-kafka, the oldest first. `packages` holds the Maven coordinates
    of each package, in which ``{connector}`` stands for the chosen connector.
    """

    scala: str
    java: range
    connectors: tuple[str, ...]
    packages: Mapping[str, tuple[str, ...]]

    def connector(self, spark: str) -> str | None:
        """Return the newest connector that is not newer than *spark*, a release such as "4.0.2"."""
        fitting = [release for release in self.connectors if release_numbers(release) <= release_numbers(spark)]
        return fitting[-1] if fitting else None


@dataclass(frozen=True)
class SparkPackage:
    """A class by which a session that has the package is recognized, and the settings that it needs before its start."""

    class_name: str
    configs: Mapping[str, str]


PACKAGES: Mapping[str, SparkPackage] = {
    "kafka": SparkPackage("org.apache.spark.sql.kafka010.KafkaSourceProvider", {}),
    "delta": SparkPackage(
        "io.delta.sql.DeltaSparkSessionExtension",
        {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        },
    ),
    "iceberg": SparkPackage(
        "org.apache.iceberg.spark.SparkCatalog",
        {"spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"},
    ),
}


def _kafka_coordinates(scala: str, tokens: str, clients: str, pool: str) -> tuple[str, ...]:
    return (
        f"org.apache.spark:spark-sql-kafka-0-10_{scala}:{{connector}}",
        f"org.apache.spark:spark-token-provider-kafka-0-10_{scala}:{tokens}",
        f"org.apache.kafka:kafka-clients:{clients}",
        f"org.apache.commons:commons-pool2:{pool}",
    )


def _delta_coordinates(artifact: str, release: str) -> tuple[str, ...]:
    return f"io.delta:{artifact}:{release}", f"io.delta:delta-storage:{release}"


def _iceberg_coordinates(artifact: str, release: str) -> tuple[str, ...]:
    return (f"org.apache.iceberg:iceberg-spark-runtime-{artifact}:{release}",)


# The token provider of 4.0.0 serves all of Spark 4, and that of 3.5.0 all of 3.5: no later ones are available. Before
# Spark 4.2 its Hadoop does not start on Java 23 or newer (HADOOP-19212).
RELEASES: Mapping[str, SparkRelease] = {
    "3.5": SparkRelease(
        "2.12",
        range(8, 23),
        ("3.5.0", "3.5.1", "3.5.3", "3.5.7"),
        {
            "kafka": _kafka_coordinates("2.12", "3.5.0", "3.4.1", "2.11.1"),
            "delta": _delta_coordinates("delta-spark_2.12", "3.3.2"),
            "iceberg": _iceberg_coordinates("3.5_2.12", "1.10.0"),
        },
    ),
    "4.0": SparkRelease(
        "2.13",
        range(17, 23),
        ("4.0.0", "4.0.1", "4.0.2", "4.0.3", "4.0.4"),
        {
            "kafka": _kafka_coordinates("2.13", "4.0.0", "3.9.1", "2.12.0"),
            "delta": _delta_coordinates("delta-spark_2.13", "4.0.0"),
            "iceberg": _iceberg_coordinates("4.0_2.13", "1.10.1"),
        },
    ),
    "4.1": SparkRelease(
        "2.13",
        range(17, 23),
        ("4.1.0", "4.1.1", "4.1.2", "4.1.3"),
        {
            "kafka": _kafka_coordinates("2.13", "4.0.0", "3.9.1", "2.12.1"),
            "delta": _delta_coordinates("delta-spark_4.1_2.13", "4.4.0"),
            "iceberg": _iceberg_coordinates("4.1_2.13", "1.11.0"),
        },
    ),
    "4.2": SparkRelease(
        "2.13",
        range(17, 26),
        ("4.2.0",),
        {
            "kafka": _kafka_coordinates("2.13", "4.0.0", "3.9.2", "2.13.1"),
            "delta": _delta_coordinates("delta-spark_4.2_2.13", "4.4.0"),
        },
    ),
}


@dataclass(frozen=True)
class SparkInstallation:
    """An installed Spark: its release, the Scala release that it was built with, and the folder of its jars."""

    spark: str
    scala: str
    jars: Path


def release_numbers(release: str) -> tuple[int, ...]:
    """Return the numbers of a release, without a suffix: (4, 1, 0) for "4.1.0.dev2"."""
    parts = release.split(".")[:3]
    return tuple(int(part) for part in parts if part.isdecimal())


def minor_release(release: str) -> str:
    """Return the minor release of a release: "4.0" for "4.0.3"."""
    return ".".join(release.split(".")[:2])


def find_installation() -> SparkInstallation:
    """Return the Spark that pyspark will start; raises PipelineError if there is none, or if the two releases differ."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise PipelineError(NO_PYSPARK)
    from pyspark import __version__

    home = os.environ.get("SPARK_HOME")
    installation = read_installation((Path(home) if home else Path(spec.origin).parent) / "jars")
    if release_numbers(installation.spark) != release_numbers(__version__):
        raise PipelineError(
            f"SPARK_HOME ({home}) is Spark {installation.spark}, and the installed pyspark is {__version__}: "
            f"unset SPARK_HOME, or install pyspark {installation.spark}"
        )
    return installation


def read_installation(jars: Path) -> SparkInstallation:
    """Recognize a Spark by the name of its core's jar, spark-core_SCALA-RELEASE.jar; raises PipelineError without one."""
    for path in sorted(jars.glob("spark-core_*-*.jar")):
        scala, _, release = path.stem.removeprefix("spark-core_").partition("-")
        return SparkInstallation(release, scala, jars)
    raise PipelineError(f"{jars} holds no jars of Spark: reinstall pyspark, or unset SPARK_HOME")


def package_coordinates(installation: SparkInstallation, package: str) -> tuple[str, ...]:
    """Return the Maven coordinates of *package* for this Spark; raises PipelineError if there are none."""
    release = RELEASES.get(minor_release(installation.spark))
    connector = release.connector(installation.spark) if release else None
    if release is None or connector is None:
        raise PipelineError(
            f"Maven Central holds no Kafka source for pyspark {installation.spark}: install pyspark {usable_releases()}"
        )
    if installation.scala != release.scala:
        raise PipelineError(
            f"this Spark {installation.spark} was built with Scala {installation.scala}, "
            f"for which no Kafka source is known: install pyspark from PyPI, built with Scala {release.scala}"
        )
    if package not in PACKAGES:
        raise PipelineError(f"unknown package {package!r}: choose from {', '.join(PACKAGES)}")
    if package not in release.packages:
        having = [name for name, release in RELEASES.items() if package in release.packages]
        raise PipelineError(
            f"there is no {package} for Spark {installation.spark}: install pyspark {_join_by_or(having)}"
        )
    return tuple(text.format(connector=connector) for text in release.packages[package])


def usable_releases() -> str:
    """Return the minor releases in the table, in words."""
    return _join_by_or(list(RELEASES))


def _join_by_or(names: Sequence[str]) -> str:
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def cache_folder() -> Path:
    """Return the user's folder of fetched files: under XDG_CACHE_HOME, or ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "kafkacompat" / "spark"


def jar_cache_folder(installation: SparkInstallation, wanted: Sequence[str]) -> Path:
    """Return the folder of the jars with these coordinates; other coordinates have another folder."""
    digest = hashlib.sha256("\n".join(wanted).encode()).hexdigest()[:12]
    return cache_folder() / f"{installation.spark}-{digest}"


def packages_of_format(name: str | None) -> tuple[str, ...]:
    """Return the packages that a session needs beside the Kafka source for that format of tables."""
    return (name,) if name in ("delta", "iceberg") else ()


def package_configs(packages: Sequence[str]) -> dict[str, str]:
    """Return the settings that the packages need; several values of one setting are joined by commas."""
    joined: dict[str, str] = {}
    for package in packages:
        for key, value in PACKAGES[package].configs.items():
            joined[key] = f"{joined[key]},{value}" if key in joined else value
    return joined
