"""The pytest plugin in sessions of its own: fixtures, markers, options, deaths and leftovers."""

from __future__ import annotations

import os
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

import kafkacompat.testing
from kafkacompat.testing.leftovers import LEFTOVERS, Leftovers

pytest_plugins = ["pytester"]


@pytest.fixture(autouse=True, scope="module")
def _load_broker() -> None:
    """Load the broker once: pytester forgets the modules that a session in this process loads."""
    with kafkacompat.testing.cluster(1) as kafka:
        kafka.produce("t", ["a"])
        kafka.records("t")


@pytest.fixture(autouse=True)
def _no_leftovers_of_other_tests() -> None:
    """Let the sessions in this process report their own leftovers only."""
    LEFTOVERS.take()


PLUGIN = ("-p", "kafkacompat.testing.plugin", "-p", "no:cacheprovider", "-q")


def test_fixtures_and_properties(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nkafka_properties =\n    num.partitions=2\n    message.max.bytes=1000\n")
    pytester.makepyfile("""
        import pytest

        def read(running, name):
            return running.call(lambda: running.broker.config.int(name))

        def test_ini_and_option(kafka):
            assert (read(kafka, "num.partitions"), read(kafka, "message.max.bytes")) == (2, 2000)
            kafka.produce("t", ["a"])

        @pytest.mark.kafka(num_partitions=3)
        class TestMarked:
            def test_an_empty_broker_with_properties(self, kafka):
                assert kafka.records("t") == []
                assert read(kafka, "num.partitions") == 3

            @pytest.mark.kafka(num_partitions=4)
            def test_the_closest_marker(self, kafka):
                assert read(kafka, "num.partitions") == 4

        def test_session_writes(kafka_session):
            kafka_session.produce("t", ["a"])

        def test_session_reads(kafka_session, kafka):
            kafka_session.assert_produced("t", "a")
            assert kafka.records("t") == []

        def test_cluster(kafka_cluster):
            kafka = kafka_cluster(2)
            kafka.create_topic("t", replicas=2)
            kafka.produce("t", ["a"])
            kafka.kill_broker(1)
            kafka.assert_produced("t", "a")
    """)
    result = pytester.runpytest_inprocess(*PLUGIN, "--kafka-property", "message.max.bytes=2000")
    result.assert_outcomes(passed=6)
    result.stdout.no_fnmatch_line("*left behind*")


def test_wrong_properties_are_sentences(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(kafka): pass")
    result = pytester.runpytest_inprocess(*PLUGIN, "--kafka-property", "3")
    result.stderr.fnmatch_lines("ERROR: kafka property '3': write NAME=VALUE")
    result = pytester.runpytest_inprocess(*PLUGIN, "--kafka-property", "num.partition=3")
    result.stdout.fnmatch_lines("*num.partition is no property of a broker (did you mean num.partitions?)*")
    result = pytester.runpytest_inprocess(*PLUGIN, "--kafka-property", "tls=true")
    result.stderr.fnmatch_lines(
        "ERROR: kafka property 'tls=true': tls is an argument, write @pytest.mark.kafka(tls=...)"
    )


def test_markers_without_effect_are_rejected(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.mark.kafka_session(num_partitions=3)
        def test_a_fixture_as_a_marker(kafka_session):
            pass

        @pytest.mark.kafka_session
        def test_a_marker_of_another_project():
            pass

        @pytest.mark.kafka(num_partitions=3)
        def test_a_property_of_a_shared_broker(kafka_session):
            pass

        @pytest.mark.kafka(num_partitions=3)
        def test_a_property_of_an_own_broker(kafka_session, kafka):
            assert kafka.call(lambda: kafka.broker.config.int("num.partitions")) == 3

        @pytest.mark.kafka
        def test_a_marker_that_only_selects(kafka_session):
            pass

        @pytest.mark.kafka(num_partitions=3)
        class TestClass:
            def test_a_shared_broker_in_a_marked_class(self, kafka_session):
                pass
    """)
    result = pytester.runpytest_inprocess(*PLUGIN)
    result.assert_outcomes(passed=4, errors=2, warnings=2)
    result.stdout.fnmatch_lines(
        [
            "@pytest.mark.kafka_session has no effect on the fixture, which all tests share: write the properties in the ini file",
            "@pytest.mark.kafka has no effect on kafka_session, which all tests share: use the fixture kafka",
        ]
    )


def test_a_dead_thread_is_named_in_the_test_that_used_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        def test_dies(kafka):
            kafka.call(lambda: kafka.broker._reactor.callLater(0, kafka.broker._reactor.stop))
            kafka._thread._thread.join(5)
            raise LookupError("the client has lost its broker")

        def test_lives(kafka):
            kafka.produce("t", ["a"])
    """)
    result = pytester.runpytest_inprocess(*PLUGIN)
    result.assert_outcomes(passed=1, failed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["*LookupError: the client has lost its broker", "the thread of the brokers has ended: its reactor was stopped"]
    )


def test_leftovers_are_reported(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import socket, threading
        import kafkacompat.testing

        kept, ending = [], threading.Event()

        def connect(kafka):
            host, port = kafka.bootstrap_servers.split(":")
            kept.append(socket.create_connection((host, int(port))))
            kafka.create_topic("t")

        def test_client(kafka):
            connect(kafka)

        def test_thread(kafka):
            threading.Thread(target=ending.wait, name="of a client").start()

        def test_broker():
            kept.append(kafkacompat.testing.broker())

        def test_fails(kafka):
            ending.set()
            connect(kafka)
            assert False
    """)
    result = pytester.runpytest_inprocess(*PLUGIN)
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*kafkacompat: left behind by tests*",
            "a connection of a client without a name was not closed (test_leftovers_are_reported.py::test_client)",
            "the thread of a client was left running (test_leftovers_are_reported.py::test_thread)",
            "the broker at 127.0.0.1:* was not stopped (test_leftovers_are_reported.py::test_broker)",
        ]
    )
    result.stdout.no_fnmatch_line("*test_fails)*")


def test_open_files_and_the_place_are_reported(tmp_path: Path) -> None:
    leftovers = Leftovers()
    leftovers.note_started(1, "localhost:1", [str(tmp_path)])
    with pytest.raises(LookupError), leftovers.at("kafka_session"):
        leftovers.note_stopped(1, ["librdkafka 2.12.0"] * 2)
        raise LookupError
    assert not leftovers._place
    with open(tmp_path / "0.log", "wb"):
        assert leftovers.take() == [
            "2 connections of librdkafka 2.12.0 were not closed (kafka_session)",
            f"the file {tmp_path}/0.log was left open",
        ]
    assert leftovers.take() == []


def test_workers_of_an_installed_package(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = pytester.mkdir("site") / "kafkacompat-0.1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: kafkacompat-of-a-test\nVersion: 0.1.0\n")
    (installed / "RECORD").write_text("kafkacompat/__init__.py,,\nspark_integration/__init__.py,,\n")
    setup = ConfigParser()
    setup.read(Path(__file__).parents[3] / "setup.cfg")
    plugin = setup["options.entry_points"]["pytest11"].strip()
    (installed / "entry_points.txt").write_text(f"[pytest11]\n{plugin}\n")
    paths = (str(installed.parent), os.environ.get("PYTHONPATH", str(Path(__file__).parents[3])))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    pytester.makepyfile("""
        import sys
        import kafkacompat.testing

        def test_the_worker_has_a_broker_that_pytest_has_not_rewritten(kafka):
            kafka.produce("t", ["a"])
            assert [record.value for record in kafka.records("t")] == [b"a"]
            loaders = {name: type(getattr(module, "__loader__", None)).__name__ for name, module in sys.modules.items()}
            assert loaders["kafkacompat.testing.plugin"] == "AssertionRewritingHook"
            assert loaders["kafkacompat.broker"] != "AssertionRewritingHook"

        def test_broker():
            kafkacompat.testing.broker()
    """)
    result = pytester.runpytest_subprocess("-p", "no:hypothesispytest", "-q", "-n", "1", timeout=60)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines("the broker at 127.0.0.1:* was not stopped (*test_broker)")


def test_the_plugin_loads_no_broker() -> None:
    program = """
import sys
before = set(sys.modules)
import pytest
before = set(sys.modules)
import kafkacompat.testing.plugin
loaded = sorted(set(sys.modules) - before)
assert all(name == "kafkacompat" or name.startswith("kafkacompat.testing") for name in loaded), loaded
assert len(loaded) <= 10, loaded
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
