"""Options of the pipelines' commands, in the words of Spark's Kafka guide; each is declared here once.

A command takes groups of them, and gets each group as one value::

    @pipeline("archive")
    @session_options
    @source_options()
    @stream_options
    def command(session: SessionOptions, source: dict[str, str], stream: StreamOptions, ...) -> Summary: ...
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from spark_integration.errors import PipelineError
from spark_integration.query import StreamOptions

_PROPERTY = re.compile(r"([^\s=:]+)\s*[=:]?\s*(.*)")

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]


@dataclass(frozen=True)
class SessionOptions:
    """Where Spark runs; in the words of spark-submit."""

    master: str = "local[*]"
    driver_memory: str = "1g"
    conf: Mapping[str, str] = field(default_factory=dict)


def grouped(name: str, options: Sequence[Decorator], collect: Callable[[dict[str, Any]], Any]) -> Decorator:
    """Make a decorator that adds *options* to a command, which gets them as its one argument *name*.

    *collect* takes the options' values out of the arguments it is given and returns what stands for them.
    """

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def collected(**values: Any) -> Any:
            values[name] = collect(values)
            return command(**values)

        declared: Command = collected
        for option in reversed(options):
            declared = option(declared)
        return declared

    return decorate


def pairs(words: Iterable[str]) -> dict[str, str]:
    """Read options that were given as NAME=VALUE; raises PipelineError."""
    split = [word.partition("=") for word in words]
    for name, equals, _ in split:
        if not (name and equals):
            raise PipelineError(f"{name!r} is not NAME=VALUE: put an equals sign between the two")
    return {name: value for name, _, value in split}


def properties_of(path: Path) -> dict[str, str]:
    """Read a client.properties file as Kafka's tools take it: ``name=value`` lines, # comments.

    A name ends at ``=``, ``:`` or a space; a line that ends with a backslash goes on in the next one, where it begins
    (java.util.Properties; its escapes are not read).
    """
    text = re.sub(r"\\\n[ \t]*", "", path.read_text(encoding="utf-8"))
    lines = [line.strip() for line in text.splitlines()]
    found = [_PROPERTY.fullmatch(line) for line in lines if line and not line.startswith(("#", "!"))]
    return {one[1]: one[2] for one in found if one}


def _session(values: dict[str, Any]) -> SessionOptions:
    return SessionOptions(values.pop("master"), values.pop("driver_memory"), pairs(values.pop("conf")))


session_options = grouped(
    "session",
    [
        click.option("--master", default="local[*]", show_default=True, help="Spark's master URL."),
        click.option("--driver-memory", default="1g", show_default=True, help="Memory of the driver (local: of all)."),
        click.option("--conf", multiple=True, metavar="NAME=VALUE", help="A configuration of Spark; many times."),
    ],
    _session,
)


def cluster_options(name: str = "cluster", prefix: str = "") -> Decorator:
    """Options of one cluster, as a dict of Spark's options ``kafka.*``; *prefix* tells several apart (``target-``)."""
    keys = [f"{prefix}{key}".replace("-", "_") for key in ("bootstrap-server", "command-config", "option")]
    return grouped(name, _cluster_declarations(prefix), lambda values: _cluster(*(values.pop(key) for key in keys)))


def _cluster_declarations(prefix: str, required: bool = True) -> list[Decorator]:
    whose = prefix.replace("-", " ")
    return [
        click.option(
            f"--{prefix}bootstrap-server", required=required, metavar="HOST:PORT", help=f"The {whose}broker, or some."
        ),
        click.option(
            f"--{prefix}command-config",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help=f"Properties of the {whose}clients (security), as Kafka's tools take them.",
        ),
        click.option(
            f"--{prefix}option",
            multiple=True,
            metavar="NAME=VALUE",
            help="Any further option of the Spark Kafka guide, kafka.* included; many times.",
        ),
    ]


def _cluster(bootstrap: str, config: Path | None, options: Sequence[str]) -> dict[str, str]:
    properties = {f"kafka.{name}": value for name, value in (properties_of(config) if config else {}).items()}
    return {**properties, **pairs(options), "kafka.bootstrap.servers": bootstrap}


# Spark's name of the option, and what help says of it.
SOURCE = {
    "subscribe": "Topics, separated by commas.",
    "subscribePattern": "A Java regular expression of topics; new ones are picked up.",
    "assign": 'Partitions: {"topic":[0,1]}.',
    "startingOffsets": 'earliest, latest, or {"topic":{"0":23,"1":-2}}.',
    "startingTimestamp": "Start at the first record of that time or later, in milliseconds.",
    "startingOffsetsByTimestamp": 'The same by partition: {"topic":{"0":1700000000000}}.',
    "failOnDataLoss": "true (stop) or false (go on) where offsets to be read are gone.",
    "minPartitions": "At least that many tasks a batch.",
}
# Of streams alone.
STREAM_SOURCE = {
    "maxOffsetsPerTrigger": "At most that many offsets a batch.",
    "minOffsetsPerTrigger": "Wait for that many offsets before a batch.",
    "maxTriggerDelay": "But no longer than this (15m).",
    "groupIdPrefix": "Prefix of the groups that Spark's consumers name.",
}
# Of batches alone.
BATCH_SOURCE = {
    "endingOffsets": 'latest, or {"topic":{"0":50,"1":-1}}.',
    "endingTimestamp": "End before the first record of that time or later, in milliseconds.",
    "endingOffsetsByTimestamp": 'The same by partition: {"topic":{"0":1700000000000}}.',
}
COUNT = click.IntRange(min=1)
# Of values that Spark would take for another, or refuse only once the query runs.
TYPES = {
    "failOnDataLoss": click.Choice(["true", "false"]),
    "startingTimestamp": click.IntRange(min=0),
    "endingTimestamp": click.IntRange(min=0),
    "minPartitions": COUNT,
    "maxOffsetsPerTrigger": COUNT,
    "minOffsetsPerTrigger": COUNT,
}
STRATEGIES = ("subscribe", "subscribePattern", "assign")


def source_options(stream: bool = True, required: bool = True, without: Sequence[str] = ()) -> Decorator:
    """Options of the Kafka source, as a dict of Spark's options; where none says, it begins at the earliest offset.

    Where they are not *required* and no broker is named, the dict is empty. Those named by *without* are not offered.
    """
    table = {**SOURCE, **(STREAM_SOURCE if stream else BATCH_SOURCE)}
    table = {name: text for name, text in table.items() if name not in without}
    own = [click.option(f"--{name}", name, type=TYPES.get(name), help=text) for name, text in table.items()]
    isolation = click.option(
        "--isolation",
        type=click.Choice(["read_committed", "read_uncommitted"]),
        default="read_committed",
        show_default=True,
        help="Whether records of aborted and unfinished transactions are read (kafka.isolation.level).",
    )
    keys = ("bootstrap_server", "command_config", "option")

    def collect(values: dict[str, Any]) -> dict[str, str]:
        bootstrap, config, further = (values.pop(key) for key in keys)
        given = {name: values.pop(name) for name in table}
        isolation = values.pop("isolation")
        if bootstrap is None:
            return _no_source(given)
        return _source(_cluster(bootstrap, config, further), given, isolation)

    return grouped("source", [*_cluster_declarations("", required), *own, isolation], collect)


def _no_source(given: Mapping[str, object]) -> dict[str, str]:
    if named := [name for name, value in given.items() if value is not None]:
        raise PipelineError(f"--{named[0]} is of a topic, and no broker is named: give --bootstrap-server HOST:PORT")
    return {}


def _source(cluster: dict[str, str], given: Mapping[str, object], isolation: str) -> dict[str, str]:
    named = {name: str(value) for name, value in given.items() if value is not None}
    source = {"startingOffsets": "earliest", "kafka.isolation.level": isolation, **cluster, **named}
    chosen = [name for name in STRATEGIES if name in source]
    if len(chosen) != 1:
        told = " and ".join(f"--{name}" for name in chosen) or "nothing"
        raise PipelineError(f"{told} says what to read: give exactly one of --subscribe, --subscribePattern, --assign")
    return source


def _stream(values: dict[str, Any]) -> StreamOptions:
    names = ("trigger", "query_name", "progress_json", "prometheus", "commit_group")
    return StreamOptions(values.pop("checkpoint_location"), **{name: values.pop(name) for name in names})


_FILE = click.Path(dir_okay=False, path_type=Path)

stream_options = grouped(
    "stream",
    [
        click.option(
            "--checkpointLocation",
            "checkpoint_location",
            required=True,
            metavar="DIR",
            help="Where the query's state is kept.",
        ),
        click.option(
            "--trigger",
            default="availableNow",
            show_default=True,
            help="availableNow (read what is there and end), or an interval like '10 seconds'.",
        ),
        click.option("--queryName", "query_name", help="The query's name in what is told of it."),
        click.option("--progress-json", type=_FILE, help="Append a line of JSON for each batch to this file."),
        click.option("--prometheus", type=_FILE, help="Keep this file in Prometheus' text format."),
        click.option("--commit-group", metavar="GROUP", help="Commit what is done as this consumer group's offsets."),
    ],
    _stream,
)
