"""A local Spark session that can read from and write to Kafka."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from spark_integration.maven import BUILD, jar_folder

POM = Path(__file__).resolve().parent / "jars" / "pom.xml"


def start_session(name: str, *, memory: str = "1g", shuffle_partitions: int = 2) -> SparkSession:
    """Start Spark in this process with the Kafka source on its class path; the jars are fetched the first time.

    All of it stays on the loopback interface, without a web page, and shows times in UTC.
    """
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").appName(name)
    for key, value in _settings(memory, shuffle_partitions).items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _settings(memory: str, shuffle_partitions: int) -> dict[str, str]:
    return {
        "spark.driver.memory": memory,
        "spark.driver.extraClassPath": f"{jar_folder(POM)}/*",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(shuffle_partitions),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(BUILD / "spark-warehouse"),
    }
