"""A ZooKeeper's jars, configuration and readiness, without a JVM."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from kafkacompat.cli.cluster import zookeeper
from kafkacompat.cli.cluster.folder import ClusterCommandError
from kafkacompat.cli.cluster.zookeeper import (
    answers_imok,
    await_imok,
    choose_port,
    find_java,
    jar_folder,
    plan_zookeeper,
    provide_jars,
    write_config,
)
from kafkacompat.config.java_properties import parse_properties


def make_program(folder: Path, name: str, script: str = "exit 0") -> Path:
    program = folder / name
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def test_java_is_that_of_java_home_or_of_the_path(tmp_path: Path) -> None:
    at_home = make_program(tmp_path / "jdk" / "bin", "java")
    on_path = make_program(tmp_path / "path", "java")
    environment = {"PATH": str(on_path.parent)}
    assert find_java(environment) == str(on_path)
    assert find_java({**environment, "JAVA_HOME": str(tmp_path / "jdk")}) == str(at_home)


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"PATH": "/nowhere"}, "java is not on the PATH, and ZooKeeper needs it: install a JDK 11"),
        ({"PATH": "/usr/bin", "JAVA_HOME": "/nowhere"}, "JAVA_HOME (/nowhere) holds no bin/java"),
    ],
)
def test_without_java_the_sentence_says_what_to_do(environment: dict[str, str], words: str) -> None:
    with pytest.raises(ClusterCommandError) as problem:
        find_java(environment)
    assert words in str(problem.value)
    assert "--override zookeeper.connect=HOST:PORT" in str(problem.value)


def refuse_report(line: str) -> None:
    raise AssertionError(line)


def ignore_report(_line: str) -> None:
    """Stand for a terminal that nobody reads."""


def test_jars_in_the_cache_need_no_maven(tmp_path: Path) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path), "PATH": "/nowhere"}
    jar_folder(environment).mkdir(parents=True)
    assert provide_jars(environment, refuse_report) == jar_folder(environment)


def test_without_jars_and_maven_the_sentence_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ClusterCommandError, match="install Apache Maven, or name a running ZooKeeper with --override"):
        provide_jars({"XDG_CACHE_HOME": str(tmp_path), "PATH": "/nowhere"}, refuse_report)
    assert list(tmp_path.iterdir()) == []


def test_maven_fills_the_cache_once(tmp_path: Path) -> None:
    script = 'for word; do case $word in -DoutputDirectory=*) echo jar > "${word#*=}/zookeeper.jar";; esac; done'
    maven = make_program(tmp_path / "bin", "mvn", script)
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": str(maven.parent)}
    lines: list[str] = []
    folder = provide_jars(environment, lines.append)
    assert sorted(path.name for path in folder.iterdir()) == ["pom.xml", "zookeeper.jar"]
    assert len(lines) == 1
    assert provide_jars(environment, refuse_report) == folder
    assert sorted(path.name for path in folder.parent.iterdir()) == [folder.name, f"{folder.name}.lock"]


def test_a_maven_that_fails_leaves_no_jars(tmp_path: Path) -> None:
    script = "echo '[INFO] x'; echo '[ERROR] Unknown host repo.maven.apache.org'; exit 1"
    maven = make_program(tmp_path / "bin", "mvn", script)
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": str(maven.parent)}
    with pytest.raises(ClusterCommandError, match=r"\(Unknown host repo\.maven\.apache\.org\): check the network"):
        provide_jars(environment, ignore_report)
    assert not jar_folder(environment).exists()
    assert len(list(jar_folder(environment).parent.iterdir())) == 1, "the lock alone"


def test_a_cache_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    maven = make_program(tmp_path / "bin", "mvn")
    environment = {"XDG_CACHE_HOME": str(tmp_path / "file"), "PATH": str(maven.parent)}
    with pytest.raises(ClusterCommandError, match="set XDG_CACHE_HOME to a folder of yours"):
        provide_jars(environment, ignore_report)


def test_the_configuration_is_read_as_it_was_meant(tmp_path: Path) -> None:
    folder = tmp_path / "größe \\ 𝄞"
    write_config(folder, 2182)
    config = parse_properties((folder / "zoo.cfg").read_text(encoding="latin-1"))
    assert (config["dataDir"], config["clientPort"]) == (str(folder.resolve() / "data"), "2182")
    assert config["clientPortAddress"] == "127.0.0.1"
    assert int(config["minSessionTimeout"]) < 6000 < int(config["maxSessionTimeout"])


def test_the_command_names_the_class_and_an_absolute_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan = plan_zookeeper("/jdk/bin/java", Path("/jars"), Path("cluster/zookeeper"), 2181)
    assert plan.command[0] == "/jdk/bin/java"
    assert plan.command[-4:] == [
        *("-cp", "/jars/*", "org.apache.zookeeper.server.quorum.QuorumPeerMain"),
        str(tmp_path / "cluster" / "zookeeper" / "zoo.cfg"),
    ]
    assert not plan.prints_ready_line


@contextmanager
def four_letter_server(answer: bytes) -> Iterator[int]:
    """Serve one connection after the other with the same answer; yields the port."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(4)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize(("answer", "is_well"), [(b"imok", True), (b"", False), (b"HTTP", False)])
def test_only_imok_is_ready(answer: bytes, is_well: bool) -> None:
    with four_letter_server(answer) as port:
        assert answers_imok(port) is is_well


def test_waiting_ends_with_the_answer_or_with_the_process() -> None:
    waits = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(waits, stdin=subprocess.PIPE) as process, four_letter_server(b"imok") as port:
        assert await_imok(process, port) == f"127.0.0.1:{port}"
        process.kill()
        process.wait()
        assert await_imok(process, port) is None


def test_a_port_in_use_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(zookeeper, "FIRST_PORT", port)
        monkeypatch.setattr(zookeeper, "LAST_PORT", port)
        with pytest.raises(ClusterCommandError, match=f"no port of {port} to {port} is free for ZooKeeper"):
            choose_port()
        monkeypatch.setattr(zookeeper, "LAST_PORT", port + 50)
        assert port < choose_port() <= port + 50


def test_the_cache_is_in_the_home_folder_by_default() -> None:
    assert str(jar_folder({})).startswith(os.path.expanduser("~/.cache/kafkacompat/zookeeper/3.9.5-"))
