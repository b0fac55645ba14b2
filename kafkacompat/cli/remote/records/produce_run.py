"""Runs `kafkacompat produce`: reads records, produces them, and reports how many were acknowledged."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event
from typing import IO, TYPE_CHECKING, NamedTuple

from kafkacompat.cli.remote.cluster import RemoteCluster, connect_cluster
from kafkacompat.cli.remote.errors import (
    EXIT_DONE,
    EXIT_INTERRUPTED,
    EXIT_REFUSED,
    RemoteError,
    explain_refusal,
    suggest_name,
)
from kafkacompat.cli.remote.output import Output
from kafkacompat.cli.remote.records.client_settings import (
    Settings,
    create_client,
    import_library,
    make_client_settings,
)
from kafkacompat.cli.remote.records.failures import OptionError
from kafkacompat.cli.remote.records.input_records import (
    InputError,
    NewRecord,
    Step,
    make_json_parser,
    make_text_parser,
    parse_lines,
    read_whole,
)
from kafkacompat.cli.remote.records.producing import Production, Refusals
from kafkacompat.storage.files.os_errors import describe_error
from kafkacompat.wire.apis.init_producer_id import InitProducerIdRequest
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kafkacompat.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kafkacompat.cli.remote.options import Target

INTERRUPTED_FLUSH_S = 10.0
QUEUE_BYTES = 64 << 20
"""What librdkafka holds of records that are not acknowledged, if one record is not larger."""
STANDARD_INPUT = Path("-")
_NEVER_SET = Event()
TOPIC_ATTEMPTS, UNKNOWN_ATTEMPTS, TOPIC_PAUSE_S = 50, 30, 0.1
"""How often a topic is requested until it has a leader, and until it is known at all."""


class Input(NamedTuple):
    """What to read, and how: each of *paths* as lines, or as one record."""

    paths: Sequence[Path]
    is_json: bool = False
    is_whole: bool = False
    key_separator: str | None = None
    null_marker: str | None = None
    constant: NewRecord = NewRecord(None)


class Delivery(NamedTuple):
    """How records are sent."""

    compression: str = "none"
    acks: str = "all"


class ProduceEnding(NamedTuple):
    """How a run ended: its exit code as far as the input decides, and the problem of the input."""

    code: int
    problem: str = ""


def produce(target: Target, topic: str, source: Input, delivery: Delivery, properties: Mapping[str, str]) -> int:
    """Produce all records; returns the exit code. Raises RemoteError and OptionError."""
    library = import_library()
    settings = make_producer_settings(make_client_settings(target), delivery)
    with ExitStack() as files:
        streams = [(files.enter_context(open_input(path)), name_source(path)) for path in source.paths]
        with connect_cluster(target) as cluster:
            require_topic(cluster, topic)
            # Brokers older than 0.11 have no idempotent producers.
            settings["enable.idempotence"] &= cluster.find_version(InitProducerIdRequest) is not None
        settings |= properties
        refusals = Refusals()
        settings |= {
            "on_delivery": refusals.count_delivery,
            "delivery.report.only.error": True,
            "error_cb": lambda _: None,
        }
        production = Production(create_client(library.Producer, settings, "--producer-property"), topic, refusals)
        with show_progress([stream for stream, _ in streams]) as step:
            ending = deliver(production, read_records(source, streams, step))
    return report(production, ending)


def deliver(production: Production, records: Iterator[NewRecord]) -> ProduceEnding:
    """Produce the records, and wait for the acknowledgements."""
    ending = ProduceEnding(EXIT_DONE)
    try:
        production.produce(records)
        production.flush(None, time.monotonic)
    except InputError as problem:
        ending = ProduceEnding(EXIT_REFUSED, str(problem))
    except KeyboardInterrupt:
        ending = ProduceEnding(EXIT_INTERRUPTED)
    try:
        limit_s = INTERRUPTED_FLUSH_S if ending.code == EXIT_INTERRUPTED else None
        production.flush(limit_s, time.monotonic)
    except KeyboardInterrupt:
        # A second one ends the wait for acknowledgements.
        return ending._replace(code=EXIT_INTERRUPTED)
    return ending


def report(production: Production, ending: ProduceEnding) -> int:
    """Write what became of the records; returns the exit code."""
    output = Output(as_json=False)
    for sentence in filter(None, (ending.problem, *production.refusals.sentences)):
        output.complain(sentence)
    output.report(summarise(production, is_interrupted=ending.code == EXIT_INTERRUPTED))
    return ending.code or (EXIT_REFUSED if production.refused or production.unknown else EXIT_DONE)


def summarise(production: Production, *, is_interrupted: bool) -> str:
    """Return the sentence that ends a run."""
    count = production.acknowledged
    text = f"{'Interrupted: ' if is_interrupted else ''}{count:,} record{'s' * (count != 1)} acknowledged"
    if production.refused:
        text += f", {production.refused:,} refused"
    if production.unknown:
        text += f", {production.unknown:,} sent without an acknowledgement"
    return text


def make_producer_settings(connection: Settings, delivery: Delivery) -> Settings:
    """Return the properties of the producer, with the defaults of Kafka's own."""
    return {
        **connection,
        "acks": delivery.acks,
        "compression.type": delivery.compression,
        "enable.idempotence": delivery.acks in ("all", "-1"),
        "delivery.timeout.ms": 120_000,
        # Keys go to the partitions to which Java's clients send them.
        "partitioner": "murmur2_random",
        "queue.buffering.max.kbytes": QUEUE_BYTES // 1024,
        # The topic's own limit decides.
        "message.max.bytes": 1_000_000_000,
    }


def require_topic(cluster: RemoteCluster, topic: str, wait: Callable[[float], object] = _NEVER_SET.wait) -> None:
    """Raise RemoteError unless the topic is there, or the broker creates it for a producer."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=True)
    for attempt in range(TOPIC_ATTEMPTS):
        code = cluster.request(request, MetadataResponse).topics[0].error_code
        # A KRaft broker does not know a topic at first whose creation it has just requested.
        is_unknown = code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and attempt < UNKNOWN_ATTEMPTS
        if code != ErrorCode.LEADER_NOT_AVAILABLE and not is_unknown:
            break
        wait(TOPIC_PAUSE_S)
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        names = [known.name for known in cluster.read_topics() if known.name]
        guess = suggest_name(topic, names)
        raise RemoteError(f"there is no topic {topic}{guess}: create it by `kafkacompat topics create {topic}`")
    if code:
        raise RemoteError(f"topic {topic} cannot be written: {explain_refusal(code)}")


def open_input(path: Path) -> IO[bytes]:
    """Open a file, or standard input for `-`; raises OptionError."""
    if path == STANDARD_INPUT:
        return sys.stdin.buffer
    try:
        return path.open("rb")
    except OSError as problem:
        raise OptionError(f"the input cannot be read: {describe_error(problem)}") from None


def name_source(path: Path) -> str:
    """Return how messages name a file."""
    return "standard input" if path == STANDARD_INPUT else str(path)


def read_records(source: Input, streams: Sequence[tuple[IO[bytes], str]], step: Step) -> Iterator[NewRecord]:
    """Yield the records of all streams in order; raises InputError."""
    marker = None if source.null_marker is None else source.null_marker.encode()
    separator = None if source.key_separator is None else source.key_separator.encode()
    parse = (
        make_json_parser(source.constant) if source.is_json else make_text_parser(separator, marker, source.constant)
    )
    for stream, name in streams:
        try:
            if source.is_whole:
                yield source.constant._replace(value=read_whole(stream, name, step))
            else:
                yield from parse_lines(stream, name, step, parse)
        except OSError as problem:
            raise InputError(f"{name} cannot be read: {describe_error(problem)}") from None


@contextmanager
def show_progress(streams: Sequence[IO[bytes]]) -> Iterator[Step]:
    """Show a bar of bytes on standard error, if that is a terminal and the input is none."""
    if not sys.stderr.isatty() or any(stream.isatty() for stream in streams):
        yield lambda _: None
        return
    from kafkacompat.cli.progress import byte_progress

    total_bytes = sum(os.fstat(stream.fileno()).st_size for stream in streams)
    # A pipe has no size.
    with byte_progress("Producing", total_bytes or None) as advance:
        yield advance
