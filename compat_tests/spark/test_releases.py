"""Other releases of Spark than this environment's write, read and archive every record in every format."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from compat_tests.brokers import Broker
from compat_tests.confluent import create_topic, read_all
from compat_tests.spark.releases import RELEASES, ROOT, python_of
from compat_tests.spark.round_trip import PARTITIONS, RECORDS

pytestmark = pytest.mark.spark
JOB_SECONDS = 600


def list_expected() -> set[tuple[Any, ...]]:
    """Return (partition, key, value, headers) of the records that the round trip writes."""
    return {(n % PARTITIONS, str(n % 7), str(n), ("parity", str(n % 2))) for n in range(RECORDS)}


@pytest.mark.parametrize("release", RELEASES)
def test_round_trip(broker: Broker, name: str, release: str) -> None:
    create_topic(broker, name, PARTITIONS)
    command = [str(python_of(release)), "-m", "compat_tests.spark.round_trip", broker.bootstrap, name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=JOB_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    stored = [
        [m.partition(), m.offset(), m.key().decode(), m.value().decode(), [[k, v.decode()] for k, v in m.headers()]]
        for m in read_all(broker, name, RECORDS, PARTITIONS)
    ]
    assert seen["spark"] == release
    assert seen["batch"] == sorted(stored)
    assert set(seen["archives"]) == {"parquet", "delta"} | ({"iceberg"} if not release.startswith("4.2") else set())
    for rows in seen["archives"].values():
        assert rows == sorted(stored)
    assert seen["doubled"] == sum(2 * number for number in range(RECORDS))
    assert {(row[0], row[2], row[3], *map(tuple, row[4])) for row in stored} == list_expected()
