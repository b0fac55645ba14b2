"""Three brokers are rolled from the wheel of an older commit to this one and back, while clients work.

`kafkacompat verify history` runs the clients and judges what they observed. With it, a topic with a known number of records shows
that nothing is lost in the log of a broker that went back.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from compat_tests.brokers import ROOT
from compat_tests.builds import InstalledCluster, install_checkout, install_commit, is_commit_here
from compat_tests.clusters import NODES
from compat_tests.failover import PARTITIONS, TOPIC, await_in_sync, create_topic, read_all
from compat_tests.waiting import until

pytestmark = pytest.mark.tools
OLDER_COMMIT = "7781e083cdd03f9c744addfc694d5117cf17eccd"
"""The commit that completed clusters: the oldest one from which a rolling upgrade is promised."""

OLDER_PROTOCOL = "3.3"
SECONDS = 120
RECORDS = 6000
ENOUGH_BYTES = 20_000
"""What all clients together have written down of their work before the first broker stops."""
CLIENTS: Mapping[str, object] = {
    "producers": 1,
    "transactional": 1,
    "copiers": 1,
    "members": 2,
    "throughput": 100,
    "group-protocol": "mixed",
    "replication-factor": 3,
    "kills": 0,
    "seed": 1,
    "seconds": SECONDS,
}


@pytest.fixture(autouse=True)
def _only_ours(broker_kind: str) -> None:
    if broker_kind != "kafkacompat":
        pytest.skip("these are our packages")
    if not is_commit_here(OLDER_COMMIT):
        pytest.skip(f"this checkout has no commit {OLDER_COMMIT}: it is shallow, or no clone")


@contextmanager
def checking_history(bootstrap: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Run the clients while the block does something else."""
    words = [word for name, value in CLIENTS.items() for word in (f"--{name}", str(value))]
    command = [
        sys.executable,
        "-m",
        "kafkacompat",
        "verify",
        "history",
        "--bootstrap-server",
        bootstrap,
        "--json",
        *words,
    ]
    (folder / "clients").mkdir()
    with (folder / "stderr").open("w") as errors:
        clients = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(folder / "clients")},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    with clients:
        try:
            yield clients
        except BaseException:
            clients.kill()
            raise


def test_brokers_roll_to_this_release_and_back_under_load(tmp_path: Path) -> None:
    older, newer = install_commit(OLDER_COMMIT, tmp_path / "older"), install_checkout(tmp_path / "newer")
    with InstalledCluster(tmp_path / "cluster", older) as cluster:
        create_topic(cluster.bootstrap)
        produce_numbers(cluster.bootstrap)
        with checking_history(cluster.bootstrap, tmp_path) as clients:
            until(
                lambda: clients.poll() is not None or count_bytes(tmp_path / "clients") > ENOUGH_BYTES,
                timeout_seconds=90,
            )
            for node in NODES:
                roll(cluster, node, newer)
            roll(cluster, 2, newer, inter_broker_protocol_version=OLDER_PROTOCOL)
            for node in NODES:
                roll(cluster, node, older)
            assert clients.poll() is None, (tmp_path / "stderr").read_text()
            output, _ = clients.communicate(timeout=4 * SECONDS)
        assert clients.returncode == 0, f"{output}\n{(tmp_path / 'stderr').read_text()}"
        counts = json.loads(output)["counts"]
        assert all(
            counts[label] > 0 for label in ("values acknowledged", "transactions committed", "offsets committed")
        )
        assert read_all(cluster.bootstrap) == {partition: list(range(RECORDS)) for partition in range(PARTITIONS)}


def count_bytes(folder: Path) -> int:
    """Return the bytes of what the clients have written down so far."""
    return sum(path.stat().st_size for path in folder.rglob("*.jsonl"))


def roll(cluster: InstalledCluster, node: int, installed: Path, **properties: str) -> None:
    """Roll one broker, and wait until it has everything."""
    cluster.roll(node, installed, **properties)
    await_in_sync(cluster.bootstrap)


def produce_numbers(bootstrap: str) -> None:
    """Write the same numbers, in their order, to each partition."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0})
    for number in range(RECORDS):
        for partition in range(PARTITIONS):
            producer.produce(TOPIC, b"%d" % number, partition=partition)
        producer.poll(0)
    assert producer.flush(60) == 0
