"""Spark's settings for a master: its address, its memory, and what jars and packages need."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from spark_integration.errors import PipelineError
from spark_integration.runtime.packages import cache_folder, package_configs

LOOPBACK = "127.0.0.1"
SECRET = r"password|passphrase|secret|jaas|keystore[.]key\b"
# Spark's own pattern, and ours: Spark knows nothing of the private keys that Kafka's clients take as text.
REDACTED = f"(?i){SECRET}|token|access[.]?key"
LOG_SETTINGS = Path(__file__).resolve().parent / "log4j2.properties"
MASTERS = r"local(\[[^]]+\])?|local-cluster\[[^]]+\]|spark://[^:/,]+:\d+(,[^:/,]+:\d+)*|yarn|k8s://.+"

# Settings that hold the user's value beside ours, and the separator between the two.
JOINED = {
    "spark.jars": ",",
    "spark.sql.extensions": ",",
    "spark.driver.extraClassPath": ":",
    "spark.driver.extraJavaOptions": " ",
}


def check_master_and_memory(master: str, memory: str) -> None:
    """Raise PipelineError unless Spark can parse the master and the JVM the amount of memory."""
    if not re.fullmatch(MASTERS, master):
        raise PipelineError(f"{master!r} is no master: give local[*], spark://HOST:PORT, yarn or k8s://HOST:PORT")
    if not re.fullmatch(r"\d+[kmgt]", memory, re.IGNORECASE):
        raise PipelineError(f"{memory!r} is no amount of memory: give a number and m or g, such as 2g")


def is_local(master: str) -> bool:
    """Return whether *master* means threads of this process's own JVM."""
    return master == "local" or master.startswith("local[")


def session_settings(
    master: str, memory: str, packages: Sequence[str], folders: Sequence[Path], java_options: Sequence[str] = ()
) -> dict[str, str]:
    """Return the settings of a session on *master*, with the jars of *folders* and what their *packages* need."""
    logging = f"-Dlog4j2.configurationFile={LOG_SETTINGS.as_uri()}"
    settings = {
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": " ".join([logging, *java_options]),
        "spark.driver.extraClassPath": ":".join(f"{folder}/*" for folder in folders),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.redaction.regex": REDACTED,
        **package_configs(packages),
    }
    if importlib.util.find_spec("pyarrow"):
        settings["spark.sql.execution.arrow.pyspark.enabled"] = "true"
    return settings | (_local_settings() if is_local(master) else _cluster_settings(folders))


def is_secret(name: str) -> bool:
    """Return whether the option or setting of this name holds a secret."""
    return re.search(SECRET, name, re.IGNORECASE) is not None


def merge_settings(settings: Mapping[str, str], configs: Mapping[str, str]) -> dict[str, str]:
    """Return our *settings* with the user's *configs*, which replace ours; those of `JOINED` hold both."""
    both = JOINED.keys() & settings.keys() & configs.keys()
    return {**settings, **configs, **{key: f"{settings[key]}{JOINED[key]}{configs[key]}" for key in both}}


def _local_settings() -> dict[str, str]:
    return {
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.sql.warehouse.dir": str(cache_folder() / "warehouse"),
        # By default Delta reads its own log with 50 tasks.
        "spark.databricks.delta.snapshotPartitions": "2",
    }


def _cluster_settings(folders: Sequence[Path]) -> dict[str, str]:
    """Send the jars to the executors; Spark itself reads the driver's address from SPARK_LOCAL_IP."""
    return {"spark.jars": ",".join(str(path) for folder in folders for path in sorted(folder.glob("*.jar")))}
