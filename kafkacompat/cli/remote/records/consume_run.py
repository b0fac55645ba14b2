"""Runs `kafkacompat consume`: finds the offsets, reads records, and writes them."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from kafkacompat.cli.remote.cluster import connect_cluster
from kafkacompat.cli.remote.errors import EXIT_DONE, EXIT_INTERRUPTED, EXIT_REFUSED, RemoteError
from kafkacompat.cli.remote.output import Output
from kafkacompat.cli.remote.records.client_settings import (
    Settings,
    create_client,
    import_library,
    make_client_settings,
)
from kafkacompat.cli.remote.records.consuming import Batch, RecordReader, store_offsets
from kafkacompat.cli.remote.records.decoding import Decode, Failures, keep_text, make_json_decode
from kafkacompat.cli.remote.records.failures import BrokerWatch, OptionError
from kafkacompat.cli.remote.records.line_format import Format, format_raw, format_values, make_line_format
from kafkacompat.cli.remote.records.positions import (
    Start,
    StartKind,
    choose_partitions,
    find_spans,
    read_partitions,
)
from kafkacompat.storage.files.os_errors import describe_error

if TYPE_CHECKING:
    from kafkacompat.cli.remote.options import Target

ISOLATION_LEVELS = ("read_uncommitted", "read_committed")
TEXT, JSON, REGISTRY = "text", "json", "registry"

AfterWrite = Callable[[Batch], object]
"""Receives a batch that is written."""


class Selection(NamedTuple):
    """The records to read.

    Without a *start* a group starts at its offsets. Other partitions start at their first record, or at the end if the
    selection follows new records.
    """

    topic: str
    start: Start | None = None
    partitions: tuple[int, ...] = ()
    group: str | None = None
    most: int | None = None
    follows: bool = False
    isolation: str = ISOLATION_LEVELS[0]


class Presentation(NamedTuple):
    """The form of the output; *path* is the file to write, None for standard output."""

    fields: tuple[str, ...] = ("value",)
    separator: str = "\t"
    is_raw: bool = False
    key_decoder: str = TEXT
    value_decoder: str = TEXT
    registry: str | None = None
    registry_config: Path | None = None
    path: Path | None = None


def consume(target: Target, selection: Selection, presentation: Presentation, properties: Mapping[str, str]) -> int:
    """Read and write records; returns the exit code. Raises RemoteError, OptionError and BrokenPipeError."""
    failures = Failures()
    is_terminal = presentation.path is None and sys.stdout.isatty()
    format_batch = make_format(presentation, failures, as_json=target.as_json, is_terminal=is_terminal)
    library = import_library()
    settings = make_consumer_settings(make_client_settings(target), selection) | dict(properties)
    starts, ends = find_offsets(target, selection)
    watch = BrokerWatch(target.bootstrap, time.monotonic)
    with ExitStack() as open_things:
        stream = open_things.enter_context(open_output(presentation.path))
        consumer = create_client(library.Consumer, settings | {"error_cb": watch.note_error}, "--consumer-property")
        open_things.callback(_close_consumer, library, consumer)
        reader = RecordReader(library, consumer, watch, ends=ends, most=selection.most)
        if selection.group is None:
            reader.assign(selection.topic, starts)
            after_write = None
        else:
            reader.subscribe(selection.topic)
            after_write = partial(store_offsets, library, consumer, selection.topic)
        code = copy_records(reader, format_batch, stream, after_write)
    if code == EXIT_INTERRUPTED and selection.follows:
        # To follow ends by an interrupt and in no other way.
        code = EXIT_DONE
    output = Output(as_json=False)
    for sentence in failures.sentences:
        output.complain(sentence)
    return code or (EXIT_REFUSED if failures.counts else EXIT_DONE)


def copy_records(reader: RecordReader, format_batch: Format, stream: IO[bytes], after_write: AfterWrite | None) -> int:
    """Write all records; returns the exit code. Raises RemoteError and BrokenPipeError."""
    try:
        for batch in reader.read():
            data = format_batch(batch)
            stream.write(data)
            stream.flush()
            reader.resize(len(data), len(batch))
            if after_write is not None:
                after_write(batch)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        raise
    except OSError as problem:
        raise RemoteError(f"the output cannot be written: {describe_error(problem)}") from None
    return EXIT_DONE


def _close_consumer(library: Any, consumer: Any) -> None:
    with suppress(library.KafkaException, RuntimeError):
        consumer.close()


@contextmanager
def open_output(path: Path | None) -> Iterator[IO[bytes]]:
    """Open the file to write, or standard output for None; raises OptionError."""
    if path is None:
        yield sys.stdout.buffer
        return
    try:
        file = path.open("wb")
    except OSError as problem:
        raise OptionError(f"--output cannot be written: {describe_error(problem)}") from None
    with file:
        yield file


def find_offsets(target: Target, selection: Selection) -> tuple[dict[int, int], dict[int, int] | None]:
    """Return the offsets at which to start and to end, by partition; None instead of ends to follow.

    Partitions without a record between both are left out.
    """
    start = selection.start or Start(StartKind.LATEST if selection.follows else StartKind.EARLIEST)
    with connect_cluster(target) as cluster:
        leaders = read_partitions(cluster, selection.topic)
        chosen = choose_partitions(selection.topic, leaders, selection.partitions)
        spans = find_spans(cluster, selection.topic, chosen, start, ISOLATION_LEVELS.index(selection.isolation))
    if selection.follows:
        return {partition: span.start for partition, span in spans.items()}, None
    if selection.group is not None:
        return {}, {partition: span.end for partition, span in spans.items()}
    left = {partition: span for partition, span in spans.items() if span.start < span.end}
    starts = {partition: span.start for partition, span in left.items()}
    return starts, {partition: span.end for partition, span in left.items()}


def make_consumer_settings(connection: Settings, selection: Selection) -> Settings:
    """Return the properties of the consumer."""
    is_earliest = selection.start == Start(StartKind.EARLIEST) or not selection.follows
    return {
        **connection,
        "group.id": selection.group or f"kafkacompat-consume-{secrets.token_hex(6)}",
        "isolation.level": selection.isolation,
        "enable.auto.commit": selection.group is not None,
        # An offset is committed after the output has the record.
        "enable.auto.offset.store": False,
        # Offsets that retention removes while they are read continue at the begin.
        "auto.offset.reset": "earliest" if is_earliest or selection.group is None else "latest",
        "enable.partition.eof": True,
        # librdkafka waits for a second whenever its queue is full, and a fast reader empties the queue sooner.
        "fetch.queue.backoff.ms": 5,
        # A request that waits at the end of one partition holds up the others, and the end of the command.
        "fetch.wait.max.ms": 500 if selection.follows else 50,
    }


def make_format(presentation: Presentation, failures: Failures, *, as_json: bool, is_terminal: bool) -> Format:
    """Return the format of the output; raises OptionError."""
    if presentation.is_raw:
        return format_raw
    decode_key, decode_value = _make_decoders(presentation, failures)
    if as_json:
        from kafkacompat.cli.remote.records.json_format import make_json_format, make_pretty_format

        return (make_pretty_format if is_terminal else make_json_format)(decode_key, decode_value)
    if presentation.fields == ("value",) and decode_value is keep_text and not is_terminal:
        return format_values
    separator = presentation.separator.encode()
    return make_line_format(presentation.fields, separator, decode_key, decode_value, escapes=is_terminal)


def _make_decoders(presentation: Presentation, failures: Failures) -> tuple[Decode, Decode]:
    kinds = presentation.key_decoder, presentation.value_decoder
    if REGISTRY in kinds and presentation.registry is None:
        raise OptionError("the decoder registry needs --schema-registry URL")
    decoders: dict[str, Any] = {TEXT: keep_text, JSON: make_json_decode(failures)}
    if REGISTRY in kinds:
        from kafkacompat.cli.remote.records.schema_values import RegistryDecoder, open_registry

        registry = open_registry(str(presentation.registry), presentation.registry_config)
        decoders[REGISTRY] = RegistryDecoder(registry, failures).decode
    return decoders[kinds[0]], decoders[kinds[1]]
