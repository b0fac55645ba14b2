"""The commands: their `--help` without PySpark, and what is rejected before a JVM starts."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kafkacompat.cli.spark import PIPELINES, spark

# Everything that the extra `spark` installs, treated as missing.
BLOCKED = (
    "pyspark",
    "py4j",
    "pandas",
    "pyarrow",
    "prometheus_client",
    "fastavro",
    "google.protobuf",
    "grpc_tools",
    "jsonschema_rs",
    "jinja2",
    "matplotlib",
)
WITHOUT_PYSPARK = f"""
import sys
sys.modules.update(dict.fromkeys({BLOCKED}))
from kafkacompat.cli.spark import PIPELINES, spark
for words in sys.argv[1:]:
    try:
        spark(words.split(","), prog_name="kafkacompat spark")
    except SystemExit as ended:
        print("exit code", ended.code)
"""


def run_without_pyspark(*commands: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_PYSPARK, *commands],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
        check=True,
    )


def test_help_needs_no_pyspark() -> None:
    done = run_without_pyspark("--help", *(f"{name},--help" for name in PIPELINES))
    assert done.stdout.count("exit code 0") == len(PIPELINES) + 1
    for name in PIPELINES:
        assert f"Usage: kafkacompat spark {name} " in done.stdout


def test_a_command_without_pyspark_says_how_to_install_it() -> None:
    done = run_without_pyspark("prepare")
    assert done.stdout == "exit code 2\n"
    assert done.stderr == "Error: PySpark is not installed: run pip install '.[spark]' in a clone of kafkacompat\n"


def run(*words: str) -> Result:
    return CliRunner().invoke(spark, list(words))


@pytest.mark.parametrize("name", PIPELINES)
def test_help_begins_with_required_options_and_ends_with_an_example(name: str) -> None:
    text = run(name, "--help").output
    headings = [line for line in text.splitlines() if re.fullmatch(r"\w.*:", line) and not line.startswith("Usage")]
    required = [option for option in spark.get_command(None, name).params if option.required]  # type: ignore[arg-type, union-attr]
    assert headings[-1] == "Example:"
    assert f"\n  kafkacompat spark {name} " in text
    if required:
        assert headings[0] == "Required:"
        section = text.split("Required:\n")[1].split("\n\n")[0]
        assert all(option.opts[0] in section for option in required)
    assert "[required]" not in text


@pytest.mark.parametrize("name", PIPELINES)
def test_an_example_is_one_that_the_command_takes(name: str) -> None:
    command = spark.get_command(None, name)  # type: ignore[arg-type]
    words = command.example.replace("\\\n", " ").split()  # type: ignore[union-attr]
    options = {option for parameter in command.params for option in parameter.opts}  # type: ignore[union-attr]
    assert words[:3] == ["kafkacompat", "spark", name]
    assert {word for word in words if word.startswith("--")} <= options


@pytest.fixture
def port() -> Iterator[int]:
    """A port that accepts connections, as a broker's does."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        number: int = listener.getsockname()[1]
    return number


@pytest.fixture(autouse=True)
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a command that wants to start Spark say so instead."""

    def start_session(*_: object, **__: object) -> None:
        raise OSError("a session is started")

    monkeypatch.setattr("spark_integration.session.start_session", start_session)
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)


def archive(address: str, folder: Path, *words: str) -> Result:
    if "--subscribe" not in words and "--assign" not in words:
        words = ("--subscribe", "t", *words)
    places = ["--path", str(folder / "archive"), "--checkpointLocation", str(folder / "checkpoint")]
    return run("archive", "--bootstrap-server", address, *places, *words)


def test_a_session_is_started_once_all_is_checked(port: int, tmp_path: Path) -> None:
    done = archive(f"127.0.0.1:{port}", tmp_path)
    assert done.output == "Error: a session is started\n"
    assert done.exit_code == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--startingOffsets", "first"], "--startingOffsets 'first' is wrong: give earliest, latest, or JSON such as"),
        (["--startingOffsets", '{"t":[0]}'], "is wrong: give earliest"),
        (["--startingOffsets", "{}"], "names no partition: give earliest"),
        (["--startingOffsets", '{"t":{"0":-3}}'], "gives t-0 the offset -3: give 0 or more, -1 (latest) or -2"),
        (["--startingOffsetsByTimestamp", "now"], "--startingOffsetsByTimestamp 'now' is wrong: give JSON such as"),
        (["--assign", '{"t":0}'], "--assign '{\"t\":0}' is wrong: give partitions as"),
        (["--assign", "t"], "--assign 't' is wrong: give partitions as"),
        (["--partitionBy", "key"], "an archive cannot be split by 'key'"),
        (["--trigger", "soon"], "'soon' is no trigger"),
        (["--master", "here"], "'here' is no master"),
        (["--driver-memory", "much"], "'much' is no amount of memory"),
        (["--conf", "a"], "'a' is not NAME=VALUE"),
        (["--targetFileSize", "0"], "'0' is no size"),
    ],
)
def test_options_are_checked_first(port: int, tmp_path: Path, words: list[str], sentence: str) -> None:
    done = archive(f"127.0.0.1:{port}", tmp_path, *words)
    assert done.exit_code == 2
    assert done.output.startswith("Error: ")
    assert sentence in done.output
    assert len(done.output.splitlines()) == 1


@pytest.mark.parametrize("address", ["localhost", "localhost:", ":9092", "a:b", "a:70000", "a:9092,", "http://a:9092"])
def test_a_bad_address_is_refused(tmp_path: Path, address: str) -> None:
    done = archive(address, tmp_path)
    assert done.exit_code == 2
    assert "is no address: give HOST:PORT, such as 127.0.0.1:9092\n" in done.output


def test_an_address_where_no_broker_listens(tmp_path: Path, closed_port: int) -> None:
    begun = time.monotonic()
    done = archive(f"127.0.0.1:{closed_port}", tmp_path)
    assert time.monotonic() - begun < 1
    assert done.output == (
        f"Error: no broker listens on 127.0.0.1:{closed_port}: start it, or correct --bootstrap-server\n"
    )


def test_one_of_several_addresses_is_enough(tmp_path: Path, port: int, closed_port: int) -> None:
    done = archive(f"127.0.0.1:{closed_port},127.0.0.1:{port}", tmp_path)
    assert "a session is started" in done.output


def test_an_unknown_host_name_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def create_connection(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "create_connection", create_connection)
    done = archive("nowhere:9092", tmp_path)
    assert done.output == "Error: the name in --bootstrap-server nowhere:9092 cannot be resolved: correct it\n"


def test_a_broker_that_is_slow_to_answer_is_left_to_kafka_s_client(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def create_connection(*_: object, **__: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", create_connection)
    assert "a session is started" in archive("far:9092", tmp_path).output


def test_both_clusters_of_a_mirror_are_asked(tmp_path: Path, port: int, closed_port: int) -> None:
    words = ["--bootstrap-server", f"127.0.0.1:{port}", "--target-bootstrap-server", f"127.0.0.1:{closed_port}"]
    done = run("mirror", *words, "--subscribe", "t", "--checkpointLocation", str(tmp_path / "c"))
    assert (
        f"no broker listens on 127.0.0.1:{closed_port}: start it, or correct --target-bootstrap-server" in done.output
    )


def test_a_trust_store_that_does_not_exist(tmp_path: Path, port: int) -> None:
    config = tmp_path / "client.properties"
    config.write_text("security.protocol=SSL\nssl.truststore.location=/nowhere/ca.pem\n")
    done = archive(f"127.0.0.1:{port}", tmp_path, "--command-config", str(config))
    assert done.output == (
        "Error: ssl.truststore.location=/nowhere/ca.pem cannot be read: name a file that exists, and check its permissions\n"
    )


def test_a_file_in_the_place_of_a_folder(tmp_path: Path, port: int) -> None:
    (tmp_path / "archive").touch()
    done = archive(f"127.0.0.1:{port}", tmp_path)
    file = tmp_path / "archive"
    assert done.output == f"Error: --path {file}: {file} is a file; give a folder, which need not exist yet\n"


def test_a_folder_that_cannot_be_written_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, port: int) -> None:
    monkeypatch.setattr(os, "access", lambda path, _: path != tmp_path)
    done = archive(f"127.0.0.1:{port}", tmp_path)
    path = tmp_path / "archive"
    assert done.output == (
        f"Error: --path {path}: {tmp_path} cannot be written to; change its permissions or name another\n"
    )


def test_an_archive_that_is_none(tmp_path: Path, port: int) -> None:
    done = run("replay", "--path", str(tmp_path), "--bootstrap-server", f"127.0.0.1:{port}")
    assert f"there is no archive in {tmp_path}: give the --path that `kafkacompat spark archive`" in done.output
    done = run("audit", "--path", f"file://{tmp_path}")
    assert f"there is no archive in {tmp_path}" in done.output


@pytest.mark.parametrize("words", [["--path", "s3a://bucket/archive"], ["--path", "archive", "--master", "yarn"]])
def test_paths_of_other_machines_are_left_to_spark(port: int, words: list[str]) -> None:
    done = run("replay", "--bootstrap-server", f"127.0.0.1:{port}", *words)
    assert "a session is started" in done.output


def test_outputs_that_cannot_be(tmp_path: Path, port: int) -> None:
    words = ["--bootstrap-server", f"127.0.0.1:{port}", "--subscribe", "t", "--dead-letter-topic", "dead"]
    words += ["--checkpointLocation", str(tmp_path / "c")]
    assert "good records would go nowhere" in run("validate", *words).output
    assert "would both go to dead" in run("validate", *words, "--topic", "dead").output


def test_a_report_without_a_folder(tmp_path: Path) -> None:
    done = run("audit", "--path", str(tmp_path), "--report", str(tmp_path / "no" / "report.html"))
    assert done.output.startswith(f"Error: there is no folder {tmp_path / 'no'}: make it")
    assert "there is nothing to audit" in run("audit").output


def test_a_stack_trace_is_shown_on_demand(tmp_path: Path, closed_port: int) -> None:
    done = archive(f"127.0.0.1:{closed_port}", tmp_path, "--stacktrace")
    assert "no broker listens" in str(done.exception)
    assert done.exc_info is not None
    assert done.exc_info[2] is not None
