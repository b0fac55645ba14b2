"""The machine's clock is set under a running broker: answers come in time, and records have the new time of day."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from compat_tests.brokers import KafkacompatBroker
from compat_tests.chaos.clocks import has_compiler, settle_clock, write_clock
from compat_tests.confluent import create_topic
from compat_tests.raw_client import RawClient, produce_request
from compat_tests.test_damage import BATCH
from compat_tests.waiting import until
from kafkacompat.wire.apis.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from kafkacompat.wire.apis.produce import ProduceResponse

MAX_WAIT_MS = 5_000
TOLERANCE_S = 15
OFFSET_S = 600


@pytest.fixture(autouse=True)
def _needs_compiler(broker_kind: str) -> None:
    if broker_kind != "kafkacompat":
        pytest.skip("it is about our reactor")
    if not has_compiler():
        pytest.skip("there is no C compiler for the library that sets clocks")


@pytest.mark.parametrize("offset_s", [-OFFSET_S, OFFSET_S])
def test_a_clock_that_is_set_moves_no_timer(tmp_path: Path, offset_s: int) -> None:
    broker = KafkacompatBroker(tmp_path / "node", {"log.message.timestamp.type": "LogAppendTime"})
    clock = settle_clock(broker)
    with broker, RawClient(broker.port) as waiting, RawClient(broker.port) as writing:
        create_topic(broker, "read")
        create_topic(broker, "written")
        begun_s = time.monotonic()
        waiting.send(fetch_request("read", MAX_WAIT_MS), 12)
        append(writing)
        write_clock(clock, offset_s)
        until(lambda: abs(append(writing) - time.time() - offset_s) < TOLERANCE_S, every_seconds=0.2)
        waiting.receive(FetchResponse, 12)
        waited_s = time.monotonic() - begun_s
    assert MAX_WAIT_MS / 1000 <= waited_s < MAX_WAIT_MS / 1000 + TOLERANCE_S


def fetch_request(topic: str, max_wait_ms: int) -> FetchRequest:
    """Return a request for the end of an empty topic, which is answered after its wait."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topics = [FetchTopic(topic=topic, partitions=[partition])]
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=1000, topics=topics)


def append(client: RawClient) -> float:
    """Append a batch; return its time of appending, in seconds."""
    answer = client.call(produce_request("written", {0: BATCH}), ProduceResponse, 9)
    return answer.responses[0].partition_responses[0].log_append_time_ms / 1000
