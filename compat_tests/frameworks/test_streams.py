"""Kafka Streams: a word count and a windowed join, stopped or killed in the middle; the results counted again."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Producer

from compat_tests.brokers import Broker
from compat_tests.confluent import create_topic
from compat_tests.frameworks.interruption import STOPPED, InterruptedJob
from compat_tests.frameworks.programme import FOLDER, Programme, serves_transactions, start_java
from compat_tests.frameworks.reading import Reader, by_key
from compat_tests.frameworks.words import WORDS_PER_LINE, count_words, make_lines

pytestmark = pytest.mark.frameworks

SOURCE = FOLDER / "java" / "StreamsJob.java"
PARTITIONS = 3
LINES = 6000
SIDE = 1500
APART_MS = 1000
BEGIN_MS = 1_700_000_000_000

SETTINGS = {
    "num.stream.threads": "2",
    "commit.interval.ms": "100",
    # Every new count goes out, so that one that is missing or comes twice is seen.
    "statestore.cache.max.bytes": "0",
    "auto.offset.reset": "earliest",
    # A killed member is missed after six seconds and not after 45.
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "1000",
}

Start = Callable[[str], Programme]


@pytest.fixture(params=["at_least_once", "exactly_once_v2"])
def guarantee(request: pytest.FixtureRequest, broker: Broker) -> str:
    """The guarantee of the job."""
    wanted: str = request.param
    if wanted == "exactly_once_v2" and not serves_transactions(broker):
        pytest.skip("the broker does not serve transactions yet")
    return wanted


@pytest.fixture
def start(broker: Broker, name: str, guarantee: str, tmp_path: Path) -> Iterator[Start]:
    """Start a job, again over the state that an earlier one left; none is left running."""
    started: list[Programme] = []

    def begin(job: str) -> Programme:
        own = {
            "bootstrap.servers": broker.bootstrap,
            "application.id": name,
            "state.dir": str(tmp_path / "state"),
            "processing.guarantee": guarantee,
        }
        settings = [f"{key}={value}" for key, value in {**SETTINGS, **own}.items()]
        started.append(start_java("StreamsJob", [job, name, *settings], tmp_path / "log", source=SOURCE))
        return started[-1]

    yield begin
    for programme in started:
        programme.kill()


def interrupt(programme: Programme, guarantee: str) -> None:
    """End a job in the middle: kill one with exactly-once semantics; stop another, which a kill would make count twice."""
    if guarantee == "exactly_once_v2":
        programme.kill()
    else:
        assert programme.stop() in STOPPED, programme.log


def test_word_count(broker: Broker, name: str, guarantee: str, start: Start) -> None:
    for topic in (name, f"{name}-out"):
        create_topic(broker, topic, PARTITIONS)
    text = make_lines(LINES, 1, words=200)
    events = [(name, None, line, BEGIN_MS) for line in text]
    send_events(broker, events[: LINES // 2])
    with closing(Reader(broker, f"{name}-out", PARTITIONS)) as reader:
        job = InterruptedJob(lambda: start("count"), lambda running: interrupt(running, guarantee))
        job.run(reader, LINES * WORDS_PER_LINE, lambda: send_events(broker, events[LINES // 2 :]))
        counts = by_key(reader.records)
    assert counts == count_words(text)


def test_windowed_join(broker: Broker, name: str, guarantee: str, start: Start) -> None:
    for side in ("left", "right", "out"):
        create_topic(broker, f"{name}-{side}", PARTITIONS)
    events = make_events(name)
    send_events(broker, events[:SIDE])
    pairs = join_events(events)
    with closing(Reader(broker, f"{name}-out", PARTITIONS)) as reader:
        job = InterruptedJob(lambda: start("join"), lambda running: interrupt(running, guarantee))
        job.run(reader, len(pairs), lambda: send_events(broker, events[SIDE:]))
        joined = sorted(record.texts for record in reader.records)
    assert joined == sorted(pairs)


Event = tuple[str, "str | None", str, int]
"""Topic, key, value, timestamp in milliseconds."""


def make_events(name: str) -> list[Event]:
    """Events of both sides, mixed, their times up to three seconds out of order."""
    chosen = random.Random(2)
    events: list[Event] = []
    for number in range(2 * SIDE):
        topic = f"{name}-{'left' if number % 2 else 'right'}"
        time_ms = BEGIN_MS + number * 20 + chosen.randrange(3000)
        events.append((topic, f"key{chosen.randrange(20)}", f"{topic[len(name) + 1]}{number}", time_ms))
    return events


def join_events(events: list[Event]) -> list[tuple[str, str]]:
    """The join by hand: every left beside every right of its key that is near enough."""
    left, right = ([event for event in events if event[0].endswith(side)] for side in ("-left", "-right"))
    near = (pair for pair in itertools.product(left, right) if is_pair(*pair))
    return [(str(event[1]), f"{event[2]}+{other[2]}") for event, other in near]


def is_pair(event: Event, other: Event) -> bool:
    return event[1] == other[1] and abs(event[3] - other[3]) <= APART_MS


def send_events(broker: Broker, events: Sequence[Event]) -> None:
    """Produce the events and wait until the broker has them."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5, "partitioner": "murmur2_random"})
    for topic, key, value, timestamp_ms in events:
        producer.produce(topic, key=key, value=value, timestamp=timestamp_ms)
    assert producer.flush(60) == 0
