"""A sample of `make crash`: killed under load, and everything is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.kills.run import run


@pytest.mark.parametrize(("level", "kills"), [("kafka", 1), ("fsync", 2)])
def test_acknowledged_records_survive_kills(broker_kind: str, tmp_path: Path, level: str, kills: int) -> None:
    if broker_kind != "kafkacompat":
        pytest.skip("it is about our own log directories")
    verdict = run(tmp_path / "node", level, kills, seed=1)
    assert verdict.anomalies == []
    assert verdict.records > 0
