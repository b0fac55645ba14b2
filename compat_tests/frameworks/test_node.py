"""Node's streams of @platformatic/kafka: a transactional job from topic to topic, killed in the middle."""

from __future__ import annotations

import hashlib
import json
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from compat_tests.brokers import Broker
from compat_tests.confluent import create_topic, produce
from compat_tests.frameworks.interruption import InterruptedJob
from compat_tests.frameworks.programme import FOLDER, Programme, serves_transactions
from compat_tests.frameworks.reading import Reader, by_partition, read_topic
from spark_integration.runtime.maven import BUILD, build_once, find_program

pytestmark = pytest.mark.frameworks

# The newest release that runs on Node 20.
PACKAGES = {"@platformatic/kafka": "1.35.0"}
SOURCE = FOLDER / "node" / "stream_job.mjs"
PARTITIONS = 3
RECORDS = 4000
INSTALL_SECONDS = 300


def test_streams(broker: Broker, name: str, tmp_path: Path) -> None:
    if not serves_transactions(broker):
        pytest.skip("the broker does not serve transactions yet")
    for topic in (name, f"{name}-out"):
        create_topic(broker, topic, PARTITIONS)
    command = [find_program("node"), str(install_job()), broker.bootstrap, name]
    values = [f"value-{number:05}" for number in range(RECORDS)]
    produce(broker, name, values[: RECORDS // 2])
    with closing(Reader(broker, f"{name}-out", PARTITIONS)) as reader:
        job = InterruptedJob(lambda: Programme(command, tmp_path / "log"), Programme.kill)
        job.run(reader, RECORDS, lambda: produce(broker, name, values[RECORDS // 2 :]))
        written = by_partition(reader.records)
    source = by_partition(read_topic(broker, name, PARTITIONS, RECORDS))
    for partition, records in source.items():
        wanted = [(key, value.upper()) for key, value in (record.texts for record in records)]
        assert [record.texts for record in written[partition]] == wanted


def install_job() -> Path:
    """Return the path of the job beside its packages, which npm installs the first time."""
    content = json.dumps(PACKAGES).encode() + SOURCE.read_bytes()
    target = BUILD / "frameworks" / f"node-{hashlib.sha256(content).hexdigest()[:12]}"

    def install(partial: Path) -> None:
        (partial / "package.json").write_text(json.dumps({"private": True, "dependencies": PACKAGES}))
        (partial / SOURCE.name).write_bytes(SOURCE.read_bytes())
        command = [find_program("npm"), "install", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run(command, cwd=partial, check=True, timeout=INSTALL_SECONDS)

    build_once(target, install)
    return target / SOURCE.name
