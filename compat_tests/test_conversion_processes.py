"""The processes that convert for old clients: started when needed, replaced when they die, gone with the broker."""

from __future__ import annotations

import fcntl
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

import pytest

from compat_tests import batches
from compat_tests.brokers import ROOT, Broker, KafkacompatBroker
from compat_tests.conftest import MakeBroker
from compat_tests.processes import is_alive, list_children, suspend_process
from compat_tests.raw_client import RawClient, produce_request
from compat_tests.same_answers.records import fetch_of
from compat_tests.waiting import until
from kafkacompat.wire.apis.fetch import FetchResponse, PartitionData
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kafkacompat.wire.apis.produce import ProduceResponse
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.workers import process

TOPIC = "converted"
OLD_VERSION = 3


@pytest.fixture
def broker(make_broker: MakeBroker, broker_kind: str) -> Broker:
    """A broker with compressed batches in a topic, each at another offset."""
    if broker_kind != "kafkacompat":
        pytest.skip("these are processes of ours")
    made = make_broker({"kafkacompat.conversion.processes": "1"})
    fill_topic(made)
    return made


def fill_topic(broker: Broker) -> None:
    with RawClient(broker.port) as client:
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=True)
        until(lambda: client.call(asked, MetadataResponse, 9).topics[0].error_code == 0)
        for _ in range(3):
            batch = batches.build([b"x" * 1000] * 10, codec=batches.GZIP)
            answer = client.call(produce_request(TOPIC, {0: batch}), ProduceResponse, 9)
            assert answer.responses[0].partition_responses[0].error_code == 0


def fetch(broker: Broker, offset: int) -> PartitionData:
    with RawClient(broker.port) as client:
        return client.call(fetch_of(TOPIC, offset), FetchResponse, OLD_VERSION).responses[0].partitions[0]


def test_a_worker_starts_when_needed_and_ends_with_the_broker(broker: Broker) -> None:
    assert list_children(broker.pid) == []
    assert fetch(broker, 0).records
    (worker,) = list_children(broker.pid)
    assert broker.stop() == 0
    assert not is_alive(worker)


def test_a_worker_ends_with_a_killed_broker(broker: Broker) -> None:
    assert fetch(broker, 0).records
    (worker,) = list_children(broker.pid)
    broker.kill()
    until(lambda: not is_alive(worker))


def test_at_work_it_ends_with_a_broker_that_is_killed_without_a_word(broker: Broker) -> None:
    assert fetch(broker, 0).records
    (worker,) = list_children(broker.pid)
    suspend_process(worker)
    with RawClient(broker.port) as client:
        client.send(fetch_of(TOPIC, 10), OLD_VERSION)
        until(lambda: unread_bytes(worker) > 0)
        broker.kill()
    os.kill(worker, signal.SIGCONT)
    until(lambda: not is_alive(worker))
    assert list_complaints(broker) == []


def list_complaints(broker: Broker) -> list[str]:
    """Return the lines of the broker's log that are more than information."""
    return [line for line in broker.stderr().splitlines() if " INFO " not in line]


def unread_bytes(pid: int) -> int:
    """Return the number of bytes in a process's standard input."""
    with open(f"/proc/{pid}/fd/0", "rb", buffering=0) as pipe:
        return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]  # type: ignore[no-any-return]


def test_one_that_dies_at_work_fails_one_answer_and_is_replaced(broker: Broker) -> None:
    assert fetch(broker, 0).records
    (worker,) = list_children(broker.pid)
    suspend_process(worker)
    with RawClient(broker.port) as client:
        client.send(fetch_of(TOPIC, 10), OLD_VERSION)
        until(lambda: unread_bytes(worker) > 0)
        os.kill(worker, signal.SIGKILL)
        (partition,) = client.receive(FetchResponse, OLD_VERSION).responses[0].partitions
        assert partition.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert fetch(broker, 10).records
    (other,) = list_children(broker.pid)
    assert other != worker


def test_the_death_of_an_idle_worker_harms_no_client(broker: Broker) -> None:
    """Such as of a system that is short of memory; a producer would give up its records for it."""
    assert fetch(broker, 0).records
    (worker,) = list_children(broker.pid)
    os.kill(worker, signal.SIGKILL)
    until(lambda: not is_alive(worker))
    assert fetch(broker, 10).records


def test_without_descriptors_there_is_an_error_and_one_line_about_it(broker: Broker) -> None:
    _, most = resource.prlimit(broker.pid, resource.RLIMIT_NOFILE)
    with RawClient(broker.port) as client:
        # The code of Fetch is imported with the first one.
        client.call(fetch_of(TOPIC, 99), FetchResponse, OLD_VERSION)
        too_few = len(os.listdir(f"/proc/{broker.pid}/fd")) + 1
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (too_few, most))
        (partition,) = client.call(fetch_of(TOPIC, 0), FetchResponse, OLD_VERSION).responses[0].partitions
        assert partition.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (most, most))
        (partition,) = client.call(fetch_of(TOPIC, 0), FetchResponse, OLD_VERSION).responses[0].partitions
        assert partition.records
    (line,) = list_complaints(broker)
    assert "Cannot start a process for conversion" in line


def test_a_signal_to_the_whole_group_is_left_to_the_broker(broker: Broker) -> None:
    assert fetch(broker, 0).records
    (worker,) = list_children(broker.pid)
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(worker, number)
    assert fetch(broker, 10).records
    assert list_children(broker.pid) == [worker]


def test_a_worker_imports_only_needed_modules() -> None:
    """Each such process would take half as much memory again."""
    environment = {**os.environ, "PYTHONPROFILEIMPORTTIME": "1"}
    done = subprocess.run(process.build_command(), stdin=subprocess.DEVNULL, capture_output=True, env=environment)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}
    assert {"kafkacompat.storage.compaction.cleaner", "kafkacompat.storage.intake.validation"} <= imported
    assert [name for name in imported if name.partition(".")[0] in ("twisted", "zope", "click")] == []


class Installed(KafkacompatBroker):
    """From files of its own, which a test may replace."""

    SITE = "site"

    def install(self) -> None:
        # With compiled bytecode, or the start would take long.
        shutil.copytree(ROOT / "kafkacompat", self.folder / self.SITE / "kafkacompat")

    def command(self) -> Sequence[str]:
        _, _, _, *arguments = super().command()
        start = "import sys; sys.path[0] = sys.argv.pop(1); from kafkacompat.__main__ import main; main()"
        return [sys.executable, "-c", start, str(self.folder / self.SITE), *arguments]


def test_an_upgrade_under_a_broker_that_runs_stops_conversion_until_it_is_restarted(tmp_path: Path) -> None:
    broker = Installed(tmp_path / "upgraded", {"kafkacompat.conversion.processes": "1"})
    broker.install()
    with broker:
        fill_topic(broker)
        assert fetch(broker, 0).records
        (worker,) = list_children(broker.pid)
        os.kill(worker, signal.SIGKILL)
        until(lambda: not is_alive(worker))
        with (broker.folder / broker.SITE / "kafkacompat" / "wire" / "conversion.py").open("a") as code:
            code.write("\n# the next release\n")
        for _ in range(2):
            assert fetch(broker, 10).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert list_children(broker.pid) == []
        (line,) = list_complaints(broker)
        assert "Stopped conversion, because the files of kafkacompat were replaced: restart the broker" in line
        broker.stop()
        broker.start()
        assert fetch(broker, 10).records


def test_a_worker_imports_nothing_from_the_brokers_working_directory(tmp_path: Path) -> None:
    for name in ("pickle", "kafkacompat"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(1)\n")
    done = subprocess.run(process.build_command(), cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
