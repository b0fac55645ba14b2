"""The jars of each release of Spark, and the messages if there are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_integration.errors import PipelineError
from spark_integration.runtime.packages import (
    PACKAGES,
    RELEASES,
    SparkInstallation,
    cache_folder,
    find_installation,
    jar_cache_folder,
    minor_release,
    package_configs,
    package_coordinates,
    read_installation,
    release_numbers,
)


def make_installation(spark: str, scala: str = "2.13") -> SparkInstallation:
    return SparkInstallation(spark, scala, Path("jars"))


@pytest.mark.parametrize(
    ("spark", "scala", "connector"),
    [
        ("4.0.0", "2.13", "4.0.0"),
        ("4.0.3", "2.13", "4.0.3"),
        ("4.0.5", "2.13", "4.0.4"),
        ("4.0.10", "2.13", "4.0.4"),
        ("4.2.1", "2.13", "4.2.0"),
        ("3.5.2", "2.12", "3.5.1"),
        ("3.5.8", "2.12", "3.5.7"),
    ],
)
def test_connector_is_the_newest_that_is_not_newer_than_spark(spark: str, scala: str, connector: str) -> None:
    assert (
        package_coordinates(make_installation(spark, scala), "kafka")[0]
        == f"org.apache.spark:spark-sql-kafka-0-10_{scala}:{connector}"
    )


def test_all_that_the_kafka_source_needs_besides_spark() -> None:
    assert package_coordinates(make_installation("4.0.0"), "kafka") == (
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
        "org.apache.kafka:kafka-clients:3.9.1",
        "org.apache.commons:commons-pool2:2.12.0",
    )


@pytest.mark.parametrize("release", RELEASES)
def test_every_coordinate_is_whole_and_of_the_scala_of_its_release(release: str) -> None:
    row = RELEASES[release]
    assert list(row.connectors) == sorted(row.connectors, key=release_numbers)
    assert {minor_release(connector) for connector in row.connectors} == {release}
    assert set(row.packages) <= set(PACKAGES)
    for package in row.packages:
        for coordinate in package_coordinates(make_installation(row.connectors[0], row.scala), package):
            _, artifact, version = coordinate.split(":")
            assert "{" not in version
            assert "_2." not in artifact or artifact.endswith(f"_{row.scala}")


@pytest.mark.parametrize("spark", ["4.3.0", "3.4.4", "5.0.0"])
def test_spark_without_a_kafka_source_is_refused_with_releases_that_have_one(spark: str) -> None:
    with pytest.raises(PipelineError) as refusal:
        package_coordinates(make_installation(spark), "kafka")
    assert str(refusal.value) == (
        f"Maven Central holds no Kafka source for pyspark {spark}: install pyspark 3.5, 4.0, 4.1 or 4.2"
    )


def test_spark_of_another_scala_is_refused_with_both_versions() -> None:
    with pytest.raises(PipelineError) as refusal:
        package_coordinates(make_installation("3.5.1", "2.13"), "kafka")
    assert "Spark 3.5.1 was built with Scala 2.13" in str(refusal.value)
    assert "Scala 2.12" in str(refusal.value)


def test_a_missing_package_is_reported_with_releases_that_have_it() -> None:
    with pytest.raises(PipelineError, match=r"no iceberg for Spark 4.2.0: install pyspark 3.5, 4.0 or 4.1"):
        package_coordinates(make_installation("4.2.0"), "iceberg")


def test_an_unknown_package_is_reported_with_the_known_ones() -> None:
    with pytest.raises(PipelineError, match="unknown package 'hudi': choose from kafka, delta, iceberg"):
        package_coordinates(make_installation("4.0.0"), "hudi")


def test_spark_is_known_by_the_jar_of_its_core(tmp_path: Path) -> None:
    (tmp_path / "spark-core_2.12-3.5.8.jar").touch()
    (tmp_path / "spark-sql_2.12-3.5.8.jar").touch()
    assert read_installation(tmp_path) == SparkInstallation("3.5.8", "2.12", tmp_path)


def test_a_folder_without_spark_is_reported(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=f"{tmp_path} holds no jars of Spark: reinstall pyspark, or unset SP"):
        read_installation(tmp_path)


def test_a_spark_home_of_another_release_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.12-3.1.2.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(PipelineError, match=rf"SPARK_HOME \({tmp_path}\) is Spark 3.1.2, and the installed pyspark is"):
        find_installation()


def test_missing_pyspark_is_reported_with_the_command_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(PipelineError, match=r"PySpark is not installed: run pip install '\.\[spark\]'"):
        find_installation()


def test_cache_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "kafkacompat" / "spark"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "kafkacompat" / "spark"


def test_other_coordinates_have_another_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first, same, other = (
        jar_cache_folder(make_installation("4.0.0"), wanted) for wanted in (["a:b:1"], ["a:b:1"], ["a:b:2"])
    )
    assert first == same != other
    assert first.parent == cache_folder()
    assert first.name.startswith("4.0.0-")


def test_settings_of_several_packages_are_joined() -> None:
    assert package_configs(["kafka"]) == {}
    assert package_configs(["kafka", "delta", "iceberg"]) == {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
