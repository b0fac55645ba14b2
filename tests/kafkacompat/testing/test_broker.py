"""A broker in the thread of the brokers: started, used, stopped."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from typing import Any

import pytest
from twisted.internet.defer import Deferred, succeed

import kafkacompat.testing
from kafkacompat.testing import BrokerError
from kafkacompat.testing.reactor_thread import THREAD_NAME, ReactorThread


def connect(bootstrap_servers: str) -> socket.socket:
    host, port = bootstrap_servers.split(":")
    return socket.create_connection((host, int(port)), timeout=5)


def test_a_broker_listens_until_it_is_stopped() -> None:
    with kafkacompat.testing.broker() as kafka:
        connect(kafka.bootstrap_servers).close()
    with pytest.raises(ConnectionRefusedError):
        connect(kafka.bootstrap_servers)
    kafka.stop()


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


def test_a_thread_that_ends_fails_the_calls_that_wait_and_later_ones() -> None:
    thread = ReactorThread()
    thread.reactor.callFromThread(lambda: thread.reactor.callLater(0, thread.reactor.stop))
    with pytest.raises(BrokerError, match="the thread of the brokers has ended: its reactor was stopped"):
        thread.call(Deferred)
    thread._thread.join(5)
    with pytest.raises(BrokerError, match="has ended"):
        thread.call(print)
    assert not thread.is_usable


def test_the_global_reactor_stays_with_the_program() -> None:
    program = """
import sys, threading, kafkacompat.testing
assert "twisted" not in sys.modules
with kafkacompat.testing.broker() as kafka:
    assert "twisted.internet.reactor" not in sys.modules
from twisted.internet import asyncioreactor
asyncioreactor.install()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
