"""Brokers to test, as processes of their own: ours, and Apache Kafka beside it, of 4.3.1 unless said otherwise."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from compat_tests.java_tools import SHORT_LIVED, java_command, run_java
from compat_tests.ports import free_port
from compat_tests.processes import cpu_seconds, resident_bytes

if TYPE_CHECKING:
    from typing_extensions import Self

ROOT = Path(__file__).resolve().parent.parent


class Broker(ABC):
    """One broker process over one folder; it can be stopped, killed and started again on the same port.

    ``properties`` are server properties beyond those that make a node of its own. Standard output
    and standard error go to ``<folder>/stdout`` and ``<folder>/stderr``. ``prefix`` is a command that runs the broker's, as in
    a network of its own, where it has the address ``host``.
    """

    kind = ""
    host = "127.0.0.1"
    prefix: Sequence[str] = ()

    def __init__(self, folder: Path, properties: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.properties = dict(properties or {})
        self.port = free_port()
        self.data_folder = folder / "data"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None, "the broker is not running"
        return self.process.pid

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @abstractmethod
    def command(self) -> Sequence[str]:
        """Return the command line that serves."""

    def prepare(self) -> None:
        """Lay out the folder before the first start."""
        self.folder.mkdir(parents=True, exist_ok=True)

    def change(self, properties: Mapping[str, str]) -> None:
        """Have other properties from the next start on; in a properties file the last line counts."""
        self.properties.update(properties)
        if self._properties_file().exists():
            with self._properties_file().open("a") as file:
                file.writelines(f"{name}={value}\n" for name, value in properties.items())

    def _properties_file(self) -> Path:
        return self.folder / "server.properties"

    def start(self, timeout_seconds: float = 60) -> float:
        """Start the process; return the seconds until it first answered ApiVersions."""
        if not self.folder.exists() or not any(self.folder.iterdir()):
            self.prepare()
        with (self.folder / "stdout").open("ab") as out, (self.folder / "stderr").open("ab") as err:
            begun = time.monotonic()
            command = [*self.prefix, *self.command()]
            self.process = subprocess.Popen(command, stdout=out, stderr=err, cwd=ROOT, env=self.environment())
        while not answers_api_versions(self.port, host=self.host):
            self._refuse_ended(time.monotonic() > begun + timeout_seconds)
        return time.monotonic() - begun

    def environment(self) -> dict[str, str]:
        """Return the process's environment variables."""
        return dict(os.environ)

    def _refuse_ended(self, late: bool) -> None:
        assert self.process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=0.01)
        if late or self.process.returncode is not None:
            self.stop()
            raise AssertionError(f"{self.kind} did not start:\n{self.stderr()[-4000:]}")

    def stderr(self) -> str:
        """Return the broker's log so far."""
        return (self.folder / "stderr").read_text(errors="replace")

    def stdout(self) -> str:
        """Return the broker's output so far."""
        return (self.folder / "stdout").read_text(errors="replace")

    def stop(self, timeout_seconds: float = 30) -> int:
        """Ask it to stop (SIGTERM; SIGKILL after the timeout) and return its exit code."""
        if self.process is None:
            return 0
        self.process.terminate()
        try:
            code = self.process.wait(timeout=timeout_seconds)
        except subprocess.TimeoutExpired:
            return self.kill()
        self.process = None
        return code

    def kill(self) -> int:
        """End it with SIGKILL, as a power cut of the process would."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        code = self.process.wait()
        self.process = None
        return code

    def cpu_seconds(self) -> float:
        """Return the CPU time that the process used since it started."""
        return cpu_seconds(self.pid)

    def resident_bytes(self) -> int:
        """Return the memory that the process holds now."""
        return resident_bytes(self.pid)


class KafkacompatBroker(Broker):
    """Ours: no properties file, so the defaults of a first start, and overrides."""

    kind = "kafkacompat"

    def command(self) -> Sequence[str]:
        overrides = {
            "listeners": f"PLAINTEXT://{self.bootstrap}",
            "log.dirs": str(self.data_folder),
            **self.properties,
        }
        options = [part for name, value in overrides.items() for part in ("--override", f"{name}={value}")]
        return [sys.executable, "-m", "kafkacompat", "serve", *options]

    def environment(self) -> dict[str, str]:
        # With bytecode, as an installed one has it, whatever is kept here: without, a start is mostly the compiling of sources.
        return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": ""}


class KafkaBroker(Broker):
    """Apache Kafka 4.3.1, one node that is broker and controller, with the limits of a single node."""

    kind = "kafka"
    JVM: Sequence[str] = SHORT_LIVED

    def prepare(self) -> None:
        super().prepare()
        controller_port = free_port()
        properties = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
            "log.dirs": str(self.data_folder),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            **{name: value for name, value in self.properties.items() if not name.startswith("kafkacompat.")},
        }
        lines = [f"{name}={value}\n" for name, value in properties.items()]
        self._properties_file().write_text("".join(lines))
        run_java("kafka.tools.StorageTool", ["format", "-t", self._cluster_id(), "-c", str(self._properties_file())])

    def _cluster_id(self) -> str:
        """Return a UUID as Kafka writes it; two brokers are two clusters."""
        return urlsafe_b64encode(self.port.to_bytes(16, "big")).rstrip(b"=").decode()

    def command(self) -> Sequence[str]:
        return java_command("kafka.Kafka", [str(self._properties_file())], jvm=self.JVM, heap="1g")


class OldKafkaBroker(Broker):
    """Apache Kafka 3.9.1 with a ZooKeeper of its own: it serves every version of every API since 0.8."""

    kind = "kafka-3.9"
    POM = ROOT / "compat_tests" / "java" / "kafka_3_9" / "pom.xml"
    JVM: Sequence[str] = SHORT_LIVED

    def __init__(self, folder: Path, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(folder, properties)
        self._zookeeper: subprocess.Popen[bytes] | None = None

    def start(self, timeout_seconds: float = 60) -> float:
        """Start ZooKeeper too; the broker waits for it."""
        zookeeper_port = free_port()
        self.properties["zookeeper.connect"] = f"127.0.0.1:{zookeeper_port}"
        zookeeper_folder = self.folder.with_name(self.folder.name + "-zookeeper")
        zookeeper_folder.mkdir(parents=True, exist_ok=True)
        arguments = [str(zookeeper_port), str(zookeeper_folder)]
        main_class = "org.apache.zookeeper.server.ZooKeeperServerMain"
        jvm = (*SHORT_LIVED, "-Dzookeeper.admin.enableServer=false")
        command = java_command(main_class, arguments, pom=self.POM, jvm=jvm)
        self._zookeeper = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return super().start(timeout_seconds)

    def prepare(self) -> None:
        super().prepare()
        properties = {
            "broker.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(self.data_folder),
            "offsets.topic.replication.factor": "1",
            "group.initial.rebalance.delay.ms": "0",
            **self.properties,
        }
        self._properties_file().write_text("".join(f"{name}={value}\n" for name, value in properties.items()))

    def command(self) -> Sequence[str]:
        # The file may say another port, of an earlier start.
        zookeeper = f"zookeeper.connect={self.properties['zookeeper.connect']}"
        arguments = [str(self._properties_file()), "--override", zookeeper]
        return java_command("kafka.Kafka", arguments, jvm=self.JVM, heap="1g", pom=self.POM)

    def stop(self, timeout_seconds: float = 30) -> int:
        """End both; the broker first, which says goodbye to ZooKeeper."""
        code = super().stop(timeout_seconds)
        self._end_zookeeper()
        return code

    def kill(self) -> int:
        """End both at once; the next start has a new ZooKeeper over the same folder."""
        code = super().kill()
        self._end_zookeeper()
        return code

    def _end_zookeeper(self) -> None:
        if self._zookeeper is not None:
            self._zookeeper.kill()
            self._zookeeper.wait()
            self._zookeeper = None


class Kafka28Broker(OldKafkaBroker):
    """Apache Kafka 2.8.2 with ZooKeeper: the first release whose partition folders name topic ids."""

    kind = "kafka-2.8"
    POM = ROOT / "compat_tests" / "java" / "tools_2_8" / "pom.xml"


class Kafka011Broker(OldKafkaBroker):
    """Apache Kafka 0.11.0.3 with ZooKeeper: the first with record batches, leader epochs and idempotent producers."""

    kind = "kafka-0.11"
    POM = ROOT / "compat_tests" / "java" / "tools_0_11" / "pom.xml"


BROKERS: dict[str, type[Broker]] = {broker.kind: broker for broker in (KafkacompatBroker, KafkaBroker)}


def answers_api_versions(port: int, timeout_seconds: float = 1, host: str = "127.0.0.1") -> bool:
    """Ask ApiVersions v0 once; False without a listener or an answer."""
    request = struct.pack(">ihhih", 10, 18, 0, 1, -1)
    try:
        with socket.create_connection((host, port), timeout=timeout_seconds) as connection:
            connection.sendall(request)
            return len(connection.recv(8)) > 0
    except OSError:
        return False
