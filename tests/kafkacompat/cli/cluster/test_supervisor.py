"""The supervisor on a clock that tests advance, over processes that do not exist."""

from __future__ import annotations

from pathlib import Path

import pytest
from twisted.internet.task import Clock

from kafkacompat.cli.cluster.folder import ClusterFolder, ClusterState, ProcessIdentity, ProcessRecord
from kafkacompat.cli.cluster.launcher import ProcessExit, ProcessListener
from kafkacompat.cli.cluster.supervision import STOP_S, ClusterSupervision
from kafkacompat.cli.cluster.supervisor import TRIM_LOGS_EVERY_S, Supervisor


class FakeLauncher:
    """Notes what it is asked for; process ids count up from 100."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.trimmed = 0
        self._pid = 99

    def start(self, name: str, listener: ProcessListener) -> ProcessIdentity | None:
        self.calls.append(("start", name))
        self._pid += 1
        return ProcessIdentity(self._pid, f"start of {self._pid}")

    def terminate(self, name: str) -> None:
        self.calls.append(("terminate", name))

    def kill(self, name: str) -> None:
        self.calls.append(("kill", name))

    def trim_logs(self) -> None:
        self.trimmed += 1

    def take_calls(self) -> list[tuple[str, str]]:
        calls, self.calls = self.calls, []
        return calls


class Scene:
    """A cluster of two brokers and a ZooKeeper, with everything that its supervisor writes."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self.launcher = FakeLauncher()
        self.folder = ClusterFolder(folder)
        self.lines: list[str] = []
        self.announced: list[str] = []
        self.codes: list[int] = []
        names = ("zookeeper", "broker-1", "broker-2")
        records = [ProcessRecord(name, "waiting", f"/data/{name}.log") for name in names]
        self.supervisor = Supervisor(
            self.clock,
            ClusterSupervision(names[1:], names[0]),
            self.launcher,
            self.folder,
            ClusterState("starting", 1, "now", "", "127.0.0.1:2181", records),
            report=self.lines.append,
            announce=self.announced.append,
            end=self.codes.append,
        )

    def make_ready(self) -> None:
        self.supervisor.begin()
        for number, name in enumerate(("zookeeper", "broker-1", "broker-2")):
            self.supervisor.note_ready(name, f"127.0.0.1:{9091 + number}")
        self.launcher.take_calls()
        self.lines.clear()

    def record(self, name: str) -> ProcessRecord:
        state = self.folder.read_state()
        assert state is not None
        return next(record for record in state.processes if record.name == name)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_start_has_one_line_an_event_and_the_ready_line(scene: Scene) -> None:
    scene.supervisor.begin()
    assert scene.launcher.take_calls() == [("start", "zookeeper")]
    scene.supervisor.note_ready("zookeeper", "127.0.0.1:2181")
    assert scene.launcher.take_calls() == [("start", "broker-1"), ("start", "broker-2")]
    scene.supervisor.note_ready("broker-2", "127.0.0.1:9093")
    assert scene.announced == []
    scene.supervisor.note_ready("broker-1", "127.0.0.1:9092")
    assert scene.lines == [
        "zookeeper started: process 100, log /data/zookeeper.log",
        "zookeeper is ready: 127.0.0.1:2181",
        "broker-1 started: process 101, log /data/broker-1.log",
        "broker-2 started: process 102, log /data/broker-2.log",
        "broker-2 is ready: 127.0.0.1:9093",
        "broker-1 is ready: 127.0.0.1:9092",
    ]
    ready = "kafkacompat cluster ready 127.0.0.1:9092,127.0.0.1:9093 zookeeper.connect=127.0.0.1:2181"
    assert scene.announced == [f"{ready} data={scene.folder.path}"]


def test_the_state_file_follows(scene: Scene) -> None:
    scene.supervisor.begin()
    assert scene.record("zookeeper").stage == "starting"
    scene.make_ready()
    state = scene.folder.read_state()
    assert state is not None
    assert (state.stage, state.bootstrap) == ("ready", "127.0.0.1:9092,127.0.0.1:9093")
    record = scene.record("broker-1")
    assert (record.stage, record.address, record.started) == ("ready", "127.0.0.1:9092", f"start of {record.pid}")
    scene.supervisor.note_exit("broker-1", ProcessExit(-9, "the last words"))
    record = scene.record("broker-1")
    assert (record.stage, record.pid, record.exit_code, record.sentence) == ("pausing", None, -9, "the last words")
    scene.clock.advance(0.5)
    assert scene.record("broker-1").restarts == 1


def test_a_broker_that_dies_is_started_after_growing_pauses(scene: Scene) -> None:
    scene.make_ready()
    for pause_s in (0.5, 1, 2):
        scene.supervisor.note_exit("broker-1", ProcessExit(1, "the disk is full"))
        scene.clock.advance(pause_s - 0.1)
        assert scene.launcher.take_calls() == []
        scene.clock.advance(0.1)
        assert scene.launcher.take_calls() == [("start", "broker-1")]
        scene.supervisor.note_ready("broker-1", "127.0.0.1:9092")
    assert "broker-1 ended with code 1: the disk is full (starts again in 2 s)" in scene.lines
    assert len(scene.announced) == 1


def test_two_brokers_that_pause_start_at_their_own_times(scene: Scene) -> None:
    scene.make_ready()
    scene.supervisor.note_exit("broker-1", ProcessExit(-9, ""))
    scene.clock.advance(0.25)
    scene.supervisor.note_exit("broker-2", ProcessExit(-9, ""))
    scene.clock.advance(0.25)
    assert scene.launcher.take_calls() == [("start", "broker-1")]
    scene.clock.advance(0.25)
    assert scene.launcher.take_calls() == [("start", "broker-2")]
    assert "broker-2 ended with signal 9, see /data/broker-2.log (starts again in 0.5 s)" in scene.lines


def test_a_broker_that_refuses_its_configuration_ends_the_start_with_its_sentence(scene: Scene) -> None:
    scene.supervisor.begin()
    scene.supervisor.note_ready("zookeeper", "127.0.0.1:2181")
    scene.supervisor.note_exit("broker-1", ProcessExit(2, "x=1 is not valid: it takes 2"))
    assert "broker-1 ended with code 2: x=1 is not valid: it takes 2" in scene.lines
    assert "broker-1 is given up after 1 try" in scene.lines
    assert ("terminate", "broker-2") in scene.launcher.take_calls()
    scene.supervisor.note_exit("broker-2", ProcessExit(0, ""))
    assert scene.launcher.take_calls() == [("terminate", "zookeeper")]
    assert scene.codes == []
    scene.supervisor.note_exit("zookeeper", ProcessExit(143, ""))
    assert scene.codes == [2]


def test_a_stop_ends_all_in_order_and_a_broker_that_hangs_is_killed(scene: Scene) -> None:
    scene.make_ready()
    scene.supervisor.stop()
    assert scene.launcher.take_calls() == [("terminate", "broker-2")]
    scene.clock.advance(STOP_S)
    assert scene.launcher.take_calls() == [("kill", "broker-2")]
    scene.supervisor.note_exit("broker-2", ProcessExit(-9, ""))
    scene.supervisor.note_exit("broker-1", ProcessExit(0, ""))
    scene.supervisor.note_exit("zookeeper", ProcessExit(143, ""))
    assert scene.launcher.take_calls() == [("terminate", "broker-1"), ("terminate", "zookeeper")]
    assert scene.codes == [0]
    assert scene.record("zookeeper").stage == "stopped"
    state = scene.folder.read_state()
    assert state is not None and state.stage == "ended"
    scene.supervisor.stop()
    assert scene.codes == [0]


def test_a_second_signal_kills_all(scene: Scene) -> None:
    scene.make_ready()
    scene.supervisor.stop()
    scene.launcher.take_calls()
    scene.supervisor.stop()
    assert scene.launcher.take_calls() == [("kill", "zookeeper"), ("kill", "broker-1"), ("kill", "broker-2")]


def test_logs_are_trimmed_again_and_again(scene: Scene) -> None:
    scene.make_ready()
    scene.clock.pump([TRIM_LOGS_EVERY_S] * 3)
    assert scene.launcher.trimmed == 3


def test_supervision_goes_on_when_the_state_cannot_be_written(scene: Scene) -> None:
    scene.make_ready()
    (scene.folder.path / "cluster.json").unlink()
    (scene.folder.path / "cluster.json").mkdir()
    (scene.folder.path / "cluster.json" / "file").touch()
    scene.supervisor.note_exit("broker-1", ProcessExit(1, ""))
    scene.clock.advance(0.5)
    assert scene.launcher.take_calls() == [("start", "broker-1")]
    assert any(line.startswith("The state file cannot be written: ") for line in scene.lines)


def test_further_brokers_are_started_and_stand_in_the_state(scene: Scene) -> None:
    scene.make_ready()
    records = [ProcessRecord(f"broker-{number}", "waiting", f"/data/{number}.log") for number in (1, 2, 3)]
    scene.supervisor.add_brokers(records)
    assert scene.launcher.take_calls() == [("start", "broker-3")]
    assert scene.record("broker-3").stage == "starting"
    scene.supervisor.note_ready("broker-3", "127.0.0.1:9094")
    state = scene.folder.read_state()
    assert state is not None
    assert (state.growths, state.bootstrap) == (1, "127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094")
    assert len(scene.announced) == 1
    scene.supervisor.stop()
    assert scene.launcher.take_calls() == [("terminate", "broker-3")]
