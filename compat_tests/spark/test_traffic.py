"""`kafkacompat spark traffic`: made and recorded traffic through Spark, with the broker's own rules."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from spark_integration.errors import PipelineError
from spark_integration.traffic.pipeline import simulate_traffic
from spark_integration.traffic.settings import COLUMNS, TrafficSettings
from spark_integration.traffic.shipping import ship_rules


def test_made_traffic_is_compared_and_drawn(spark: Any, tmp_path: Path) -> None:
    summary = simulate_traffic(spark, TrafficSettings(instances=4, brokers=3, seconds=20, output=str(tmp_path)))
    assert summary.instances == 4
    used = {name: figures["usable"] for name, figures in summary.figures["skewed"].items()}
    assert used["shared"] > 0.9 > 0.7 > used["static"]
    assert {Path(name).name for name in summary.files} == {path.name for path in tmp_path.iterdir()}
    assert json.loads((tmp_path / "traffic-simulation.json").read_text())["figures"] == summary.figures


def test_recorded_traffic_is_read(spark: Any, tmp_path: Path) -> None:
    rows = [f"shop,{broker},{second},{size},1000" for second in range(30) for broker, size in (("a", 900), ("b", 50))]
    (tmp_path / "traffic.csv").write_text("\n".join([",".join(COLUMNS), *rows]) + "\n")
    summary = simulate_traffic(spark, TrafficSettings(path=str(tmp_path / "traffic.csv")))
    assert summary.instances == 1 and set(summary.figures) == {"recorded", "all"}
    assert summary.figures["recorded"]["shared"]["usable"] > 0.9

    (tmp_path / "other.csv").write_text("instance,broker\na,b\n")
    with pytest.raises(
        PipelineError, match="has no column second: its header is instance,broker,second,bytes,limit_bytes"
    ):
        simulate_traffic(spark, TrafficSettings(path=str(tmp_path / "other.csv")))


def test_executors_get_the_rules_alone(spark: Any) -> None:
    ship_rules(spark)
    with zipfile.ZipFile(Path(str(spark.sparkContext._temp_dir)) / "traffic-rules.zip") as packed:
        names = packed.namelist()
    assert {"kafkacompat/__init__.py", "kafkacompat/tenancy/__init__.py"} <= set(names)
    assert all(name.startswith("kafkacompat/tenancy/traffic/") for name in names[2:]) and len(names) > 9
