"""The cluster of `kafkacompat verify history --brokers N`: brokers that are killed in turn, and a ZooKeeper."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import click

from kafkacompat.cli.cluster.folder import ClusterCommandError
from kafkacompat.cli.cluster.plan import ZOOKEEPER_CONNECT, broker_name, choose_replication
from kafkacompat.cli.cluster.zookeeper import find_java, plan_zookeeper, provide_jars, write_config
from kafkacompat.history.broker import RunError, StartedBroker
from kafkacompat.history.ports import free_port

PROPERTIES = {
    # The broker that stops last has no other broker to hand its partitions to, and would try three times in 15 s.
    "controlled.shutdown.retry.backoff.ms": "200",
}


class StartedCluster:
    """Brokers with the node ids from 1, and a ZooKeeper unless *overrides* name one. Raises RunError without a JDK."""

    def __init__(self, folder: Path, brokers: int, overrides: Mapping[str, str]) -> None:
        self._folder = folder
        self._zookeeper = None if overrides.get(ZOOKEEPER_CONNECT) else StartedZooKeeper(folder / "zookeeper")
        connect = {} if self._zookeeper is None else {ZOOKEEPER_CONNECT: self._zookeeper.connect}
        common = {**choose_replication(brokers), **PROPERTIES, **connect, **overrides}
        self._brokers = [
            StartedBroker(folder / broker_name(number), {**common, "node.id": str(number)})
            for number in range(1, brokers + 1)
        ]
        self._next = 0

    @property
    def bootstrap(self) -> str:
        """Value of bootstrap.servers with every broker."""
        return ",".join(broker.bootstrap for broker in self._brokers)

    def start(self) -> None:
        """Start ZooKeeper and the brokers, and wait until all are ready; raises RunError."""
        self._folder.mkdir(exist_ok=True)
        if self._zookeeper is not None:
            self._zookeeper.start()
        for broker in self._brokers:
            broker.start()

    def check(self) -> None:
        """Raise RunError if a process ended by itself."""
        if self._zookeeper is not None:
            self._zookeeper.check()
        for broker in self._brokers:
            broker.check()

    def restart(self) -> None:
        """Kill the next broker in turn with SIGKILL and start it again."""
        self._brokers[self._next].restart()
        self._next = (self._next + 1) % len(self._brokers)

    def stop(self) -> None:
        """Stop the brokers, the last one first, and ZooKeeper after them."""
        for broker in reversed(self._brokers):
            broker.stop()
        if self._zookeeper is not None:
            self._zookeeper.kill()


class StartedZooKeeper:
    """One ZooKeeper server over a folder; raises RunError if a JDK or its jars are missing."""

    def __init__(self, folder: Path) -> None:
        try:
            java = find_java(os.environ)
            jars = provide_jars(os.environ, lambda line: click.echo(line, err=True))
        except ClusterCommandError as problem:
            raise RunError(str(problem)) from problem
        self._folder, self._port = folder, free_port()
        self._plan = plan_zookeeper(java, jars, folder, self._port)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def connect(self) -> str:
        """Value of zookeeper.connect."""
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start it and wait until it answers; raises RunError."""
        write_config(self._folder, self._port)
        with self._plan.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._plan.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        if self._plan.await_ready(self._process) is None:
            raise RunError(f"ZooKeeper does not start: see {self._plan.log}")

    def check(self) -> None:
        """Raise RunError if it ended by itself."""
        if self._process is not None and (code := self._process.poll()) is not None:
            raise RunError(f"ZooKeeper ended by itself with code {code}: see {self._plan.log}")

    def kill(self) -> None:
        """End it with SIGKILL, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
