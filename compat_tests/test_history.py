"""A sample of `make history`: stock clients are killed, the broker is killed, and the history has no findings."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from compat_tests.brokers import ROOT, Broker, KafkacompatBroker
from kafkacompat.history.broker import RunError, run_restart_command

FEW = {
    "producers": 1,
    "transactional": 1,
    "copiers": 1,
    "members": 1,
    "group-protocol": "mixed",
    "throughput": 100,
    "seed": 1,
}


@pytest.mark.tools
def test_a_recorded_history_with_kills_has_no_findings(broker_kind: str, broker: Broker, tmp_path: Path) -> None:
    own = ("--kills", "2", "--seconds", "6")
    client_properties = tmp_path / "client.properties"
    client_properties.write_text("security.protocol=PLAINTEXT\nkey.serializer=none\n")
    given = ("--bootstrap-server", broker.bootstrap, "--command-config", str(client_properties), "--seconds", "5")
    history = tmp_path / "history.jsonl"
    few = [word for name, value in FEW.items() for word in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "kafkacompat", "verify", "history", *few, "--history", str(history)]
    done = subprocess.run(
        [*command, *(own if broker_kind == "kafkacompat" else given)],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    counts = {label: int(count) for label, count in re.findall(r"^(\S.*?)\s+(\d+)$", done.stdout, re.MULTILINE)}
    for label in (
        "values acknowledged",
        "copies acknowledged",
        "transactions committed",
        "records read",
        "offsets committed",
    ):
        assert counts[label] > 0, done.stdout
    assert counts["broker killed"] == (2 if broker_kind == "kafkacompat" else 0)
    assert ("have no effect: key.serializer" in done.stderr) == (broker_kind != "kafkacompat")
    assert history.stat().st_size > 10_000


@pytest.mark.tools
def test_nothing_is_wrong_in_what_clients_of_a_cluster_saw(broker_kind: str, tmp_path: Path) -> None:
    if broker_kind != "kafkacompat":
        pytest.skip("the command starts its own brokers")
    few = [word for name, value in FEW.items() for word in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "kafkacompat", "verify", "history", "--brokers", "3", "--json", *few]
    done = subprocess.run(
        [*command, "--kills", "3", "--seconds", "9"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    report = json.loads(done.stdout)
    operations = report["operations"]
    assert operations["tried"] == operations["acknowledged"] + operations["indeterminate"]
    assert operations["acknowledged"] > 100
    assert (report["faults"], report["findings"]) == ({"broker killed": 3}, {})
    # Each broker was killed, so each partition was without its leader for a while.
    assert all(report["longest_gaps_s"][clients] > 0.1 for clients in ("writers", "readers", "groups"))


FORGETFUL = """
kill -9 $(cat {pid})
truncate -s -3000 {data}/*-records-0/00000000000000000000.log
{python} -m kafkacompat serve --override listeners=PLAINTEXT://{bootstrap} --override log.dirs={data} 2>{stderr} &
echo $! > {pid}
"""


def test_a_broker_that_forgets_the_end_of_a_log_is_found_out(tmp_path: Path) -> None:
    with KafkacompatBroker(tmp_path / "broker") as broker:
        pid = tmp_path / "pid"
        pid.write_text(str(broker.pid))
        names = {"pid": pid, "data": broker.data_folder, "python": sys.executable, "stderr": tmp_path / "stderr"}
        options = {
            "bootstrap-server": broker.bootstrap,
            "restart-command": FORGETFUL.format(bootstrap=broker.bootstrap, **names),
            **{"kills": 1, "seconds": 2, "producers": 1, "transactional": 0, "copiers": 0, "members": 0},
        }
        command = [sys.executable, "-m", "kafkacompat", "verify", "history", "--json"]
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        try:
            done = subprocess.run(
                [*command, *words],
                cwd=ROOT,
                env={**os.environ, "TMPDIR": str(tmp_path)},
                capture_output=True,
                text=True,
                timeout=240,
                check=False,
            )
        finally:
            os.kill(int(pid.read_text()), signal.SIGKILL)
    assert done.returncode == 1, done.stderr
    # Other findings depend on whether the end was written again.
    assert "lost" in {check["check"] for check in json.loads(done.stdout)["checks"] if check["found"]}


def test_a_process_of_a_restart_command_keeps_running(tmp_path: Path) -> None:
    process_id = tmp_path / "pid"
    run_restart_command(f"sleep 300 & echo $! > {process_id}", tmp_path / "log")
    os.kill(int(process_id.read_text()), signal.SIGKILL)
    with pytest.raises(RunError, match=r"ended with code 3: see .*/log"):
        run_restart_command("echo no; exit 3", tmp_path / "log")
    assert (tmp_path / "log").read_text() == "no\n"
