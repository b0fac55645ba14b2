"""A broker in the thread of the brokers: started, used, stopped."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred, succeed

import kafkacompat.testing
from kafkacompat.adjustable_reactor import ClockError
from kafkacompat.server.connection import MAX_IN_FLIGHT_REQUESTS
from kafkacompat.testing import Acl, BrokerError, Record, RunningBroker
from kafkacompat.testing.leftovers import LEFTOVERS
from kafkacompat.testing.reactor_thread import THREAD_NAME, ReactorThread
from kafkacompat.wire.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.kafkacompat.server.listening import encode_request


def connect(bootstrap_servers: str) -> socket.socket:
    host, port = bootstrap_servers.split(":")
    return socket.create_connection((host, int(port)), timeout=5)


def test_a_broker_listens_until_it_is_stopped() -> None:
    with kafkacompat.testing.broker() as kafka:
        connect(kafka.bootstrap_servers).close()
    with pytest.raises(ConnectionRefusedError):
        connect(kafka.bootstrap_servers)
    kafka.stop()
    with pytest.raises(BrokerError, match="no broker runs any more"):
        kafka.produce("t", ["a"])


def test_a_client_that_is_closed_while_its_requests_wait_is_not_left_behind() -> None:
    LEFTOVERS.take()
    with kafkacompat.testing.broker() as kafka:
        kafka.create_topic("t")
        topic = FetchTopic(topic="t", partitions=[FetchPartition(partition=0, partition_max_bytes=1)])
        fetch = encode_request(FetchRequest(max_wait_ms=60_000, min_bytes=1, max_bytes=1, topics=[topic]), 4)
        with connect(kafka.bootstrap_servers) as client:
            client.sendall((len(fetch).to_bytes(4, "big") + fetch) * (MAX_IN_FLIGHT_REQUESTS + 1))

            def has_waiting_request() -> bool:
                return any(connection.waiting_requests for connection in kafka.broker.server.connections)

            assert any(kafka.call(has_waiting_request) for _ in range(100_000))
    assert LEFTOVERS.take() == []


def test_calls_run_in_the_thread_of_the_brokers() -> None:
    async def wait(value: str) -> str:
        return await succeed(value)

    def fail() -> None:
        raise LookupError("as asked")

    with kafkacompat.testing.broker() as kafka:
        assert kafka.call(threading.current_thread).name == THREAD_NAME
        assert kafka.call(wait, "coroutine") == "coroutine"
        assert kafka.call(succeed, "Deferred") == "Deferred"
        assert kafka.call(lambda: kafka.broker.config.int("offsets.topic.num.partitions")) == 1
        with pytest.raises(LookupError, match="as asked"):
            kafka.call(fail)
        with pytest.raises(BrokerError, match="call the function itself"):
            kafka.call(kafka.call, print)


def test_properties_have_underscores_or_dots() -> None:
    dotted: dict[str, Any] = {"log.cleanup.policy": ["compact", "delete"]}
    with kafkacompat.testing.broker(num_partitions=3, **dotted) as kafka:
        config = kafka.call(lambda: kafka.broker.config)
        assert (config.int("num.partitions"), config.list("log.cleanup.policy")) == (3, ["compact", "delete"])
    with pytest.raises(
        BrokerError, match=r"num\.partition is no property of a broker \(did you mean num\.partitions\?\)"
    ):
        kafkacompat.testing.broker(num_partition=3)
    with pytest.raises(BrokerError, match="many"):
        kafkacompat.testing.broker(num_partitions="many")


@pytest.mark.parametrize(
    ("start", "sentence"),
    [
        (lambda _: kafkacompat.testing.broker(zookeeper_connect="zk:2181"), "zookeeper.connect=zk:2181 cannot be set"),
        (lambda _: kafkacompat.testing.broker(broker_id=4), "broker.id=4 cannot be set: set node.id, its newer name"),
        (lambda _: kafkacompat.testing.cluster(1, node_id=4), "node.id=4 cannot be set"),
        (lambda path: kafkacompat.testing.broker(path / "a,b"), "has a comma, which separates the folders of log.dirs"),
        (
            lambda path: kafkacompat.testing.broker(path, log_dirs="/other"),
            "log.dirs=/other cannot be set: the data are in",
        ),
    ],
)
def test_a_property_that_the_fixture_sets_itself_is_rejected(
    start: Callable[[Path], object], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(BrokerError, match=sentence):
        start(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"folder": 5}, "folder=5 has the wrong type, int: give a path"),
        ({"tls": "true"}, "tls='true' has the wrong type, str: give True or False"),
        ({"users": ["alice"]}, r"users=\['alice'\] has the wrong type, list: give passwords by name"),
        ({"users": {"alice": 5}}, "has the wrong type, dict: give passwords by name"),
        ({"acls": Acl("alice", "READ", topic="t")}, r"has the wrong type, Acl: give a list of rules"),
        ({"acls": ["alice"]}, r"acls=\['alice'\] has the wrong type, list: give a list of rules"),
        ({"releases": 4.3}, "releases=4.3 has the wrong type, float: give names"),
        ({"releases": [4.3]}, r"releases=\[4.3\] has the wrong type, list: give names"),
    ],
)
def test_an_argument_of_the_wrong_type_is_one_sentence(arguments: dict[str, Any], sentence: str) -> None:
    for start in (kafkacompat.testing.broker, kafkacompat.testing.cluster):
        with pytest.raises(BrokerError, match=sentence):
            start(**arguments)


def test_a_number_of_brokers_or_instances_of_the_wrong_type_is_one_sentence() -> None:
    with pytest.raises(BrokerError, match="brokers='3' has the wrong type, str: give a number"):
        kafkacompat.testing.cluster("3")  # type: ignore[arg-type]
    for instances in (5, [5], {"shop": 5}):
        with pytest.raises(BrokerError, match=r"has the wrong type, .*: give names"):
            kafkacompat.testing.broker(instances=instances)  # type: ignore[arg-type]


def test_names_may_come_from_a_generator() -> None:
    with kafkacompat.testing.broker(
        instances=(name for name in ("shop",)), releases=(name for name in ("2.8",))
    ) as kafka:
        assert list(kafka.instances) == ["shop"]
        assert kafka.call(lambda: "RELEASE_2_8" in kafka.broker.listeners.bound)


def test_a_call_returns_what_its_function_returns_also_an_exception() -> None:
    with kafkacompat.testing.broker() as kafka:
        assert isinstance(kafka.call(ValueError, "x"), ValueError)
        with pytest.raises(ValueError, match="y"):
            kafka.call(int, "y")


def test_a_clock_rejects_times_that_cannot_be() -> None:
    with kafkacompat.testing.broker() as kafka:
        for days in (math.nan, math.inf, 1e12, -1):
            with pytest.raises(ClockError, match="the clock cannot be advanced"):
                kafka.clock.advance(days=days)


def test_a_thread_that_ends_fails_the_calls_that_wait_and_later_ones() -> None:
    thread = ReactorThread()
    thread.reactor.callFromThread(lambda: thread.reactor.callLater(0, thread.reactor.stop))
    with pytest.raises(BrokerError, match="the thread of the brokers has ended: its reactor was stopped"):
        thread.call(Deferred)
    thread._thread.join(5)
    with pytest.raises(BrokerError, match="has ended"):
        thread.call(print)
    assert not thread.is_usable


def test_the_program_may_own_the_global_reactor_and_ends_by_itself() -> None:
    program = """
import sys, threading
import kafkacompat.testing
assert "twisted" not in sys.modules

kafka = kafkacompat.testing.broker()
kafka.call(lambda: kafka.broker._reactor.getThreadPool().callInThread(print, "from the pool"))
assert "twisted.internet.reactor" not in sys.modules

from twisted.internet import asyncioreactor
asyncioreactor.install()
from twisted.internet import reactor
from twisted.internet.threads import deferToThread
from twisted.python.threadable import isInIOThread

def read(_):
    assert isInIOThread()
    return deferToThread(kafka.records, "t", 1)

done = []
reactor.callWhenRunning(
    lambda: deferToThread(kafka.produce, "t", ["a"]).addCallback(read).addBoth(done.append).addBoth(lambda _: reactor.stop())
)
reactor.run()
assert done[0][0].value == b"a", done
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "from the pool\n", "")


def test_asyncio_calls_helpers_in_threads() -> None:
    async def use(kafka: RunningBroker) -> list[Record]:
        reading = asyncio.create_task(asyncio.to_thread(kafka.records, "t", 1))
        await asyncio.to_thread(kafka.produce, "t", ["a"])
        return await reading

    with kafkacompat.testing.broker() as kafka:
        assert [record.value for record in asyncio.run(use(kafka))] == [b"a"]


def test_a_forked_child_starts_brokers_of_its_own() -> None:
    with kafkacompat.testing.broker() as kafka, connect(kafka.bootstrap_servers):
        child = os.fork()
        if not child:
            code = 1
            try:
                with pytest.raises(BrokerError, match="this broker runs in the parent process"):
                    kafka.records("t")
                with kafkacompat.testing.broker() as own:
                    own.produce("t", ["a"])
                    assert len(own.records("t")) == 1
                kafka.stop()
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        kafka.produce("t", ["b"])
        kafka.assert_produced("t", "b", exactly=True)


def test_signals_stay_those_of_the_test() -> None:
    with kafkacompat.testing.broker() as kafka:
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        with pytest.raises(KeyboardInterrupt):
            kafka.call(lambda: kafka.broker._reactor.callLater(0, os.kill, os.getpid(), signal.SIGINT))
            kafka.records("never", 1)
        kafka.produce("t", ["a"])
