"""A ZooKeeper for a cluster on this machine: its jars from Maven, its configuration, and whether it is ready."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from kafkacompat.cli.cluster.folder import ClusterCommandError
from kafkacompat.cli.cluster.launcher import ProcessPlan, Running
from kafkacompat.storage.files.os_errors import describe_error

RELEASE = "3.9.5"
NAME = "zookeeper"
FIRST_PORT = 2181
LAST_PORT = FIRST_PORT + 100
FETCH_S = 600
RUOK_EVERY_S, RUOK_TIMEOUT_S = 0.05, 1.0

# metrics-core and snappy-java are "provided" in ZooKeeper's own pom, but its server does not start without them. The natives of
# netty-tcnative are for other systems.
POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kafkacompat</groupId><artifactId>zookeeper-jars</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.zookeeper</groupId><artifactId>zookeeper</artifactId><version>{RELEASE}</version>
      <exclusions>
        <exclusion><groupId>io.netty</groupId><artifactId>netty-tcnative-boringssl-static</artifactId></exclusion>
      </exclusions>
    </dependency>
    <dependency>
      <groupId>io.dropwizard.metrics</groupId><artifactId>metrics-core</artifactId><version>4.1.12.1</version>
    </dependency>
    <dependency>
      <groupId>org.xerial.snappy</groupId><artifactId>snappy-java</artifactId><version>1.1.10.5</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>2.0.13</version>
    </dependency>
  </dependencies>
</project>
"""

# ZooKeeper allows sessions of 2 to 20 ticks only; with limits of their own, each broker gets the zookeeper.session.timeout.ms
# that it is configured with. admin.enableServer would bind port 8080. The default of maxClientCnxns, 60 connections from an
# address, is few for a machine that runs everything.
CONFIG = """tickTime=500
minSessionTimeout=1000
maxSessionTimeout=60000
dataDir={data}
clientPortAddress=127.0.0.1
clientPort={port}
admin.enableServer=false
4lw.commands.whitelist=*
maxClientCnxns=0
autopurge.snapRetainCount=3
autopurge.purgeInterval=24
"""
JVM = ("-Xmx128m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")

INSTEAD = "or name a running ZooKeeper with --override zookeeper.connect=HOST:PORT"


def find_java(environment: Mapping[str, str]) -> str:
    """Return the java of JAVA_HOME, else that of the PATH; raises ClusterCommandError."""
    home = environment.get("JAVA_HOME")
    path = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java", path=environment.get("PATH", ""))
    if path is None:
        where = f"JAVA_HOME ({home}) holds no bin/java" if home else "java is not on the PATH"
        raise ClusterCommandError(f"{where}, and ZooKeeper needs it: install a JDK 11 or newer, {INSTEAD}")
    return path


def jar_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of ZooKeeper's jars in the user's cache; the folder of another pom has another name."""
    base = environment.get("XDG_CACHE_HOME")
    digest = hashlib.sha256(POM.encode()).hexdigest()[:12]
    return (Path(base) if base else Path.home() / ".cache") / "kafkacompat" / "zookeeper" / f"{RELEASE}-{digest}"


def provide_jars(environment: Mapping[str, str], report: Callable[[str], None]) -> Path:
    """Return the folder of ZooKeeper's jars, which Maven fetches the first time; raises ClusterCommandError."""
    folder = jar_folder(environment)
    if folder.is_dir():
        return folder
    maven = shutil.which("mvn", path=environment.get("PATH", ""))
    if maven is None:
        raise ClusterCommandError(
            f"ZooKeeper's jars are not in {folder} and mvn, which fetches them, is not on the PATH: "
            f"install Apache Maven, {INSTEAD}"
        )
    report(f"Fetching ZooKeeper {RELEASE} with Maven into {folder} (7 MB, once)")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with folder.with_name(f"{folder.name}.lock").open("w") as lock:
            # Another process may fetch the same jars.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.is_dir():
                _fetch_jars(maven, folder)
    except OSError as problem:
        raise ClusterCommandError(
            f"ZooKeeper's jars cannot be kept in {folder} ({describe_error(problem)}): "
            "set XDG_CACHE_HOME to a folder of yours"
        ) from problem
    return folder


def _fetch_jars(maven: str, folder: Path) -> None:
    """Fill the folder completely or not at all."""
    partial = Path(tempfile.mkdtemp(prefix=folder.name, dir=folder.parent))
    try:
        pom = partial / "pom.xml"
        pom.write_text(POM)
        options = ["-q", "-B", "-f", str(pom), f"-DoutputDirectory={partial}", "-DincludeScope=runtime"]
        _run_maven([maven, *options, "dependency:copy-dependencies"])
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _run_maven(command: list[str]) -> None:
    try:
        subprocess.run(
            command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=FETCH_S
        )
    except subprocess.TimeoutExpired:
        raise ClusterCommandError(
            f"Maven has not fetched ZooKeeper {RELEASE} in {FETCH_S} s: check the network, {INSTEAD}"
        ) from None
    except subprocess.CalledProcessError as failure:
        errors = [line for line in failure.stdout.splitlines() if "ERROR" in line]
        words = errors[0].partition("]")[2].strip()[:300] if errors else f"exit code {failure.returncode}"
        raise ClusterCommandError(
            f"Maven could not fetch ZooKeeper {RELEASE} ({words}): check the network, {INSTEAD}"
        ) from None


def choose_port() -> int:
    """Return ZooKeeper's own port, or the next one that nobody listens on; raises ClusterCommandError."""
    for port in range(FIRST_PORT, LAST_PORT + 1):
        with socket.socket() as probe:
            # As a server does: connections that ended lately do not hold the port.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise ClusterCommandError(
        f"no port of {FIRST_PORT} to {LAST_PORT} is free for ZooKeeper: stop a process, {INSTEAD}"
    )


def plan_zookeeper(java: str, jars: Path, folder: Path, port: int) -> ProcessPlan:
    """Return how ZooKeeper is started over *folder*."""
    command = [java, *JVM, "-cp", f"{jars}/*", "org.apache.zookeeper.server.quorum.QuorumPeerMain"]
    return ProcessPlan(
        name=NAME,
        command=[*command, str(folder.resolve() / "zoo.cfg")],
        folder=folder,
        log=folder / f"{NAME}.log",
        await_ready=lambda process: await_imok(process, port),
        prints_ready_line=False,
    )


def write_config(folder: Path, port: int) -> None:
    """Write ZooKeeper's configuration into its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    data = _escape_properties_value(str(folder.resolve() / "data"))
    (folder / "zoo.cfg").write_text(CONFIG.format(data=data, port=port))


def _escape_properties_value(text: str) -> str:
    """Write other characters than ASCII as java.util.Properties reads them, in units of UTF-16."""
    units = (unit for character in text for unit in _utf16_units(character))
    return "".join(chr(unit) if 0x20 < unit < 0x7F and unit != ord("\\") else f"\\u{unit:04x}" for unit in units)


def _utf16_units(character: str) -> list[int]:
    data = character.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[start : start + 2], "big") for start in range(0, len(data), 2)]


def await_imok(process: Running, port: int) -> str | None:
    """Wait until ZooKeeper answers that it is well; returns HOST:PORT, or None if the process ended."""
    while True:
        try:
            process.wait(RUOK_EVERY_S)
        except subprocess.TimeoutExpired:
            if answers_imok(port):
                return f"127.0.0.1:{port}"
        else:
            return None


def answers_imok(port: int) -> bool:
    """Return whether a ZooKeeper on this port answers `ruok` with `imok`."""
    try:
        with socket.create_connection(("127.0.0.1", port), RUOK_TIMEOUT_S) as connection:
            connection.sendall(b"ruok")
            return connection.recv(4) == b"imok"
    except OSError:
        return False
