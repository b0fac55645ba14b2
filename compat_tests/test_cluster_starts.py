"""Starts that a cluster refuses: one sentence, an exit code, and neither a directory nor a znode is created."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_acl

from compat_tests.brokers import ROOT, KafkacompatBroker
from compat_tests.ports import free_port
from compat_tests.zookeeper import ZooKeeperServer, new_chroot
from kafkacompat.metadata.image import BrokerImage
from kafkacompat.metadata.znodes.brokers import encode_broker

OWN_ID = "4L6g3nShT-eMCtK--X86sw"
OTHER_ID = b'{"version":"1","id":"AAAAAAAAAAAAAAAAAAAAAA"}'
MIGRATION = b'{"version":0,"kraft_controller_id":3000,"kraft_controller_epoch":5,"kraft_metadata_offset":7,"kraft_metadata_epoch":4}'
KRAFT = b'{"version":2,"brokerid":3000,"timestamp":"1","kraftControllerEpoch":5}'
ELSEWHERE = BrokerImage(1, None, {"PLAINTEXT": ("other", 9092)}, security_protocols={"PLAINTEXT": "PLAINTEXT"})

Tree = dict[str, bytes]


class Start(NamedTuple):
    """A start: the nodes that exist before it, its properties, and the words of its refusal."""

    reason: str
    nodes: Tree = {}
    properties: dict[str, str] = {}
    chroot: str = ""
    owner: str | None = None
    """The cluster that the log directory belongs to."""
    code: int = 1


STARTS = {
    "a living broker with the same id": Start(
        "broker 1 is running already at PLAINTEXT://other:9092",
        {"/brokers/ids/1": encode_broker(ELSEWHERE, 0)},
        {"broker.id": "1"},
    ),
    "directories of another cluster": Start(
        f"the log directories belong to the cluster {OWN_ID}", {"/cluster/id": OTHER_ID}, owner=OWN_ID
    ),
    "a chroot without a cluster": Start("zookeeper.connect holds no cluster", owner=OWN_ID),
    "a chroot that is missing": Start("ZooKeeper has no chroot", chroot="/missing", owner=OWN_ID),
    "a chroot before the last server": Start("has a server after the chroot", chroot="/kafka,127.0.0.1:1"),
    "a chroot that is no path": Start("the chroot", chroot="/a//b"),
    "a migration": Start("the KRaft controller 3000 migrates", {"/migration": MIGRATION}),
    "a KRaft controller": Start("a KRaft controller has taken over", {"/controller": KRAFT}),
    "a damaged controller": Start("damaged at /controller", {"/controller": b"{"}),
    "a damaged cluster id": Start("damaged at /cluster/id", {"/cluster/id": b"{"}),
    "damaged configs": Start("damaged at /config/topics/t", {"/config/topics/t": b"[]"}),
    "no rights": Start("the node's ACL does not allow this", {}, chroot="/read-only"),
    "every address": Start("other brokers cannot reach", {}, {"listeners": "PLAINTEXT://0.0.0.0:{port}"}),
    "no address": Start("other brokers cannot reach", {}, {"listeners": "PLAINTEXT://:{port}"}),
    "every address advertised": Start(
        "advertised.listeners=PLAINTEXT://0.0.0.0:{port}",
        {},
        {"advertised.listeners": "PLAINTEXT://0.0.0.0:{port}"},
        code=2,
    ),
}


@pytest.fixture
def kazoo(zookeeper: ZooKeeperServer, broker_kind: str) -> Iterator[KazooClient]:
    """A client below a chroot of this test."""
    if broker_kind != "kafkacompat":
        pytest.skip("these sentences are ours")
    client = KazooClient(zookeeper.connect)
    client.start()
    client.chroot = new_chroot()
    client.ensure_path("/")
    yield client
    client.stop()
    client.close()


def read_tree(kazoo: KazooClient, path: str = "/") -> Tree:
    """Return the tree with the values of all nodes."""
    nodes = {path: kazoo.get(path)[0]}
    for name in kazoo.get_children(path):
        nodes.update(read_tree(kazoo, f"{path.rstrip('/')}/{name}"))
    return nodes


def serve(folder: Path, properties: dict[str, str]) -> subprocess.CompletedProcess[str]:
    options = [part for name, value in properties.items() for part in ("--override", f"{name}={value}")]
    return subprocess.run(
        [sys.executable, "-m", "kafkacompat", "serve", *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def assert_refused(result: subprocess.CompletedProcess[str], code: int, reason: str) -> None:
    sentences = [line for line in result.stderr.splitlines() if line.startswith("kafkacompat: ")]
    assert len(sentences) == 1 and reason in sentences[0], result.stderr
    assert "Traceback" not in result.stderr
    assert (result.returncode, result.stdout) == (code, "")


@pytest.mark.parametrize("case", STARTS)
def test_a_start_that_cannot_succeed_creates_nothing(
    zookeeper: ZooKeeperServer, kazoo: KazooClient, tmp_path: Path, case: str
) -> None:
    start, data, port = STARTS[case], tmp_path / "data", str(free_port())
    for path, value in start.nodes.items():
        kazoo.create(path, value, makepath=True, ephemeral=path.startswith("/brokers/ids/"))
    if start.chroot == "/read-only":
        kazoo.create(start.chroot, b"", acl=[make_acl("world", "anyone", read=True)])
    if start.owner is not None:
        data.mkdir()
        (data / "meta.properties").write_text(f"version=1\nnode.id=1\ncluster.id={start.owner}\n")
    before = read_tree(kazoo), sorted(tmp_path.rglob("*"))
    given = {"listeners": "PLAINTEXT://127.0.0.1:{port}", **start.properties}
    result = serve(
        tmp_path,
        {
            "zookeeper.connect": f"{zookeeper.connect}{kazoo.chroot}{start.chroot}",
            "log.dirs": str(data),
            **{name: value.replace("{port}", port) for name, value in given.items()},
        },
    )
    assert_refused(result, start.code, start.reason.replace("{port}", port))
    assert (read_tree(kazoo), sorted(tmp_path.rglob("*"))) == before


def test_without_zookeeper_a_start_ends_after_its_timeout(tmp_path: Path, broker_kind: str) -> None:
    if broker_kind != "kafkacompat":
        pytest.skip("these sentences are ours")
    connect = f"127.0.0.1:{free_port()}"
    properties = {"zookeeper.connect": connect, "zookeeper.connection.timeout.ms": "500", "log.dirs": "data"}
    result = serve(tmp_path, properties)
    assert_refused(result, 1, f"zookeeper.connect={connect}: no ZooKeeper answers within 0.5 s")
    assert not list(tmp_path.iterdir())


def test_two_brokers_have_two_ids(zookeeper: ZooKeeperServer, kazoo: KazooClient, tmp_path: Path) -> None:
    connect = {"zookeeper.connect": f"{zookeeper.connect}{kazoo.chroot}", "broker.id": "1"}
    with KafkacompatBroker(tmp_path / "one", connect) as first:
        second = {**connect, "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}", "log.dirs": str(tmp_path / "two")}
        result = serve(tmp_path, second)
        assert_refused(result, 1, f"broker 1 is running already at PLAINTEXT://127.0.0.1:{first.port}")
        assert not (tmp_path / "two").exists()
        assert kazoo.get_children("/brokers/ids") == ["1"]
