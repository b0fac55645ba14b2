"""The rules of traffic control for executors on other machines, which have no kafkacompat."""

from __future__ import annotations

import zipfile
from pathlib import Path

from pyspark.sql import SparkSession

from kafkacompat.tenancy import traffic as rules

FOLDER = Path(rules.__file__).resolve().parent


def ship_rules(session: SparkSession) -> None:
    """Send the folder of the rules to the executors, with the packages around it empty."""
    path = Path(str(session.sparkContext._temp_dir)) / "traffic-rules.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("kafkacompat/__init__.py", "")
        packed.writestr("kafkacompat/tenancy/__init__.py", "")
        for source in sorted(FOLDER.glob("*.py")):
            packed.write(source, f"kafkacompat/tenancy/{FOLDER.name}/{source.name}")
    session.sparkContext.addPyFile(str(path))
