"""Spark's settings for a master."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spark_integration.errors import PipelineError
from spark_integration.runtime.settings import (
    REDACTED,
    check_master_and_memory,
    is_local,
    is_secret,
    merge_settings,
    session_settings,
)


@pytest.fixture
def jars(tmp_path: Path) -> list[Path]:
    for name in ("kafka", "delta"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.jar").touch()
    return [tmp_path / "kafka", tmp_path / "delta"]


@pytest.mark.parametrize(
    ("master", "local"),
    [("local", True), ("local[*]", True), ("local[2,3]", True), ("local-cluster[2,1,1024]", False), ("yarn", False)],
)
def test_which_masters_are_local(master: str, local: bool) -> None:
    assert is_local(master) is local


@pytest.mark.parametrize(
    "master",
    [
        "local",
        "local[*]",
        "local[4,2]",
        "spark://one:7077",
        "spark://one:7077,two:7077",
        "yarn",
        "k8s://https://host:443",
    ],
)
def test_masters_that_spark_knows(master: str) -> None:
    check_master_and_memory(master, "1g")


@pytest.mark.parametrize("master", ["", "locally", "spark://one", "http://one:7077", "local[", "yarn-client"])
def test_an_unknown_master_is_refused(master: str) -> None:
    with pytest.raises(
        PipelineError, match=r"' is no master: give local\[\*\], spark://HOST:PORT, yarn or k8s://HOST:"
    ):
        check_master_and_memory(master, "1g")


@pytest.mark.parametrize("memory", ["", "lots", "1", "2 g", "1gb"])
def test_a_bad_amount_of_memory_is_refused(memory: str) -> None:
    with pytest.raises(PipelineError, match=f"'{memory}' is no amount of memory: give a number and m or g"):
        check_master_and_memory("local", memory)


def test_local_session_stays_on_the_loopback_interface(jars: list[Path]) -> None:
    settings = session_settings("local[*]", "2g", ["kafka", "delta"], jars)
    assert settings["spark.driver.host"] == settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert settings["spark.driver.extraClassPath"] == f"{jars[0]}/*:{jars[1]}/*"
    assert settings["spark.driver.memory"] == "2g"
    assert settings["spark.ui.enabled"] == "false"
    assert settings["spark.sql.session.timeZone"] == "UTC"
    assert settings["spark.sql.extensions"] == "io.delta.sql.DeltaSparkSessionExtension"
    assert not Path(settings["spark.sql.warehouse.dir"]).is_relative_to(Path.cwd())
    assert "spark.jars" not in settings


def test_a_cluster_gets_the_jars_and_no_driver_address(jars: list[Path]) -> None:
    settings = session_settings("spark://host:7077", "1g", ["kafka", "delta"], jars)
    assert settings["spark.jars"] == f"{jars[0]}/kafka.jar,{jars[1]}/delta.jar"
    assert settings["spark.driver.extraClassPath"] == f"{jars[0]}/*:{jars[1]}/*"
    assert not settings.keys() & {"spark.driver.host", "spark.driver.bindAddress", "spark.sql.warehouse.dir"}


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("kafka.sasl.jaas.config", True),
        ("spark.kafka.clusters.a.ssl.key.password", True),
        ("kafka.ssl.keystore.key", True),
        ("kafka.ssl.keystore.location", False),
        ("spark.kafka.clusters.a.sasl.token.mechanism", False),
    ],
)
def test_names_of_secrets(name: str, secret: bool) -> None:
    assert is_secret(name) is secret


def test_spark_hides_what_it_hides_by_itself_and_private_keys() -> None:
    for name in ("kafka.ssl.keystore.key", "fs.s3a.access.key", "auth.token", 'sasl.jaas.config=x password="y"'):
        assert re.search(REDACTED, name)
    assert not re.search(REDACTED, "kafka.ssl.truststore.location")


def test_settings_of_the_user_go_before_ours_or_stand_beside_them() -> None:
    ours = {"spark.jars": "kafka.jar", "spark.ui.enabled": "false", "spark.driver.extraClassPath": "kafka/*"}
    users = {"spark.jars": "own.jar", "spark.ui.enabled": "true", "spark.sql.extensions": "org.example.Own"}
    assert merge_settings(ours, users) == {
        "spark.jars": "kafka.jar,own.jar",
        "spark.ui.enabled": "true",
        "spark.driver.extraClassPath": "kafka/*",
        "spark.sql.extensions": "org.example.Own",
    }
