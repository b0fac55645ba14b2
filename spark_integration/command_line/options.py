"""Options of the commands, in the words of Spark's Kafka guide; each is declared here once. Imports no pyspark.

A command takes groups of options, and receives each group as one value::

    @pipeline_command("archive", example="kafkacompat spark archive …")
    @source_options()
    @stream_options
    @session_options
    def command(source: dict[str, str], stream: StreamOptions, session: SessionOptions, ...) -> Summary: ...
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from spark_integration.command_line.checks import (
    check_addresses,
    check_assignment,
    check_for_secrets,
    check_source_offsets,
)
from spark_integration.errors import PipelineError
from spark_integration.queries.settings import StreamOptions
from spark_integration.topics.client_settings import KAFKA, read_kafka_options
from spark_integration.topics.names import TargetNames

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]

# The headings of `--help`, in their order; required options stand under the first one.
REQUIRED = "Required"
SOURCE_GROUP = "What is read"
PIPELINE_GROUP = "What is done"
TARGET_GROUP = "Where it goes"
QUERY_GROUP = "The query"
CLUSTER_GROUP = "Kafka"
SESSION_GROUP = "Spark"
OTHER_GROUP = "Output and help"
GROUPS = (
    REQUIRED,
    SOURCE_GROUP,
    PIPELINE_GROUP,
    TARGET_GROUP,
    QUERY_GROUP,
    CLUSTER_GROUP,
    SESSION_GROUP,
    OTHER_GROUP,
)


class GroupedOption(click.Option):
    """An option that `--help` lists under a heading of `GROUPS`."""

    def __init__(self, *args: Any, group: str = PIPELINE_GROUP, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.group = REQUIRED if self.required else group


def option(*names: str, **attributes: Any) -> Decorator:
    """Declare an option; *group* is its heading in `--help`, all other attributes are those of click.option."""
    return click.option(*names, cls=GroupedOption, **attributes)


class PipelineCommand(click.Command):
    """A command whose `--help` lists required options first, then the others by group, then an example."""

    def __init__(self, *args: Any, example: str, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.example = example

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings."""
        groups: dict[str, list[tuple[str, str]]] = {name: [] for name in GROUPS}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                groups[getattr(parameter, "group", OTHER_GROUP)].append(_without_noise(record))
        for name, records in groups.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example, whose lines stay as they are."""
        with formatter.section("Example"):
            for line in self.example.splitlines():
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")


def _without_noise(record: tuple[str, str]) -> tuple[str, str]:
    """Remove from an option's help what its heading says already, and defaults that are empty."""
    names, text = record
    return names, text.replace("  [required]", "").replace('  [default: ""]', "")


@dataclass(frozen=True)
class SessionOptions:
    """Where Spark runs, in the words of spark-submit."""

    master: str = "local[*]"
    driver_memory: str = "1g"
    conf: Mapping[str, str] = field(default_factory=dict)


def collect_options(name: str, options: Sequence[Decorator], collect: Callable[[dict[str, Any]], Any]) -> Decorator:
    """Return a decorator that adds *options* to a command, which receives them as its one argument *name*.

    *collect* removes the options' values from the arguments that it is given, and returns the value that stands for them.
    """

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def collected(**values: Any) -> Any:
            values[name] = collect(values)
            return command(**values)

        declared: Command = collected
        for declare in reversed(options):
            declared = declare(declared)
        return declared

    return decorate


def parse_pairs(words: Iterable[str]) -> dict[str, str]:
    """Parse options that were given as NAME=VALUE; raises PipelineError."""
    split = [word.partition("=") for word in words]
    for name, equals, _ in split:
        if not (name and equals):
            raise PipelineError(f"{name!r} is not NAME=VALUE: put an equals sign between the two")
    return {name: value for name, _, value in split}


def _collect_session(values: dict[str, Any]) -> SessionOptions:
    conf = parse_pairs(values.pop("conf"))
    check_for_secrets("--conf", conf, "spark.kafka.", "spark-defaults.conf in the folder SPARK_CONF_DIR")
    return SessionOptions(values.pop("master"), values.pop("driver_memory"), conf)


session_options = collect_options(
    "session",
    [
        option("--master", default="local[*]", show_default=True, group=SESSION_GROUP, help="Spark's master URL."),
        option(
            "--driver-memory",
            default="1g",
            show_default=True,
            group=SESSION_GROUP,
            help="Memory of the driver; with a local master this is all of Spark's memory.",
        ),
        option(
            "--conf",
            multiple=True,
            metavar="NAME=VALUE",
            group=SESSION_GROUP,
            help="Spark property; repeat the option for several.",
        ),
    ],
    _collect_session,
)


def cluster_options(name: str = "cluster", prefix: str = "") -> Decorator:
    """Options of one cluster, as a dict of Spark's options ``kafka.*``; *prefix* tells several apart (``target-``)."""
    keys = [f"{prefix}{key}".replace("-", "_") for key in ("bootstrap-server", "command-config", "option")]

    def collect(values: dict[str, Any]) -> dict[str, str]:
        bootstrap, config, further = (values.pop(key) for key in keys)
        return _collect_cluster(prefix, bootstrap, config, further)

    return collect_options(name, _cluster_declarations(prefix), collect)


def _cluster_declarations(prefix: str, required: bool = True) -> list[Decorator]:
    whose = prefix.replace("-", " ")
    group = TARGET_GROUP if prefix else CLUSTER_GROUP
    return [
        option(
            f"--{prefix}bootstrap-server",
            required=required,
            metavar="HOST:PORT",
            group=SOURCE_GROUP,
            help=f"Address of a {whose}broker, or of several with commas between them.",
        ),
        option(
            f"--{prefix}command-config",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            group=group,
            help=f"File of properties of the {whose}Kafka clients (security), as Kafka's tools take it.",
        ),
        option(
            f"--{prefix}option",
            multiple=True,
            metavar="NAME=VALUE",
            group=group,
            help="Further option of the Spark Kafka guide, such as kafka.client.id=x; repeat it for several.",
        ),
    ]


def _collect_cluster(prefix: str, bootstrap: str, config: Path | None, further: Sequence[str]) -> dict[str, str]:
    check_addresses(f"--{prefix}bootstrap-server", bootstrap)
    options = parse_pairs(further)
    check_for_secrets(f"--{prefix}option", options, KAFKA, f"the file of --{prefix}command-config")
    from_file = read_kafka_options(config) if config else {}
    return {**from_file, **options, f"{KAFKA}bootstrap.servers": bootstrap}


# Options that name what is read: exactly one of them is given.
STRATEGIES = {
    "subscribe": "One of three: topics, separated by commas.",
    "subscribePattern": "One of three: a Java regular expression of topics; new ones are picked up.",
    "assign": 'One of three: partitions, as {"topic":[0,1]}.',
}
# Spark's name of the option, and its help.
SOURCE = {
    **STRATEGIES,
    "startingOffsets": 'earliest, latest, or {"topic":{"0":23,"1":-2}}. [default: earliest]',
    "startingTimestamp": "Start at the first record of this time or later, in milliseconds since 1970.",
    "startingOffsetsByTimestamp": 'The same by partition: {"topic":{"0":1700000000000}}.',
    "failOnDataLoss": "If offsets are gone before they are read: true (stop) or false (continue). [default: true]",
    "minPartitions": "Read a batch with at least this many tasks.",
}
# Of streams alone.
STREAM_SOURCE = {
    "maxOffsetsPerTrigger": "Read at most this many offsets in a batch.",
    "minOffsetsPerTrigger": "Start a batch once there are this many offsets.",
    "maxTriggerDelay": "Start a batch after this time at the latest, such as 15m.",
    "groupIdPrefix": "Prefix of the consumer groups that Spark's consumers name.",
}
# Of batches alone.
BATCH_SOURCE = {
    "endingOffsets": 'latest, or {"topic":{"0":50,"1":-1}}. [default: latest]',
    "endingTimestamp": "End before the first record of this time or later, in milliseconds since 1970.",
    "endingOffsetsByTimestamp": 'The same by partition: {"topic":{"0":1700000000000}}.',
}
COUNT = click.IntRange(min=1)
# Of values that Spark would misread, or reject only once the query runs.
TYPES = {
    "failOnDataLoss": click.Choice(["true", "false"]),
    "startingTimestamp": click.IntRange(min=0),
    "endingTimestamp": click.IntRange(min=0),
    "minPartitions": COUNT,
    "maxOffsetsPerTrigger": COUNT,
    "minOffsetsPerTrigger": COUNT,
}


def source_options(stream: bool = True, required: bool = True, without: Sequence[str] = ()) -> Decorator:
    """Options of the Kafka source, as a dict of Spark's options; it begins at the earliest offset by default.

    If they are not *required* and no broker is named, the dict is empty. The command lacks the options named by *without*.
    """
    table = {**SOURCE, **(STREAM_SOURCE if stream else BATCH_SOURCE)}
    table = {name: text for name, text in table.items() if name not in without}
    declared = [
        option(
            f"--{name}",
            name,
            type=TYPES.get(name),
            help=text,
            group=REQUIRED if required and name in STRATEGIES else SOURCE_GROUP,
        )
        for name, text in table.items()
    ]
    isolation_option = option(
        "--isolation",
        type=click.Choice(["read_committed", "read_uncommitted"]),
        default="read_committed",
        show_default=True,
        group=SOURCE_GROUP,
        help="read_committed leaves out records of aborted and open transactions (kafka.isolation.level).",
    )
    keys = ("bootstrap_server", "command_config", "option")

    def collect(values: dict[str, Any]) -> dict[str, str]:
        bootstrap, config, further = (values.pop(key) for key in keys)
        given = {name: str(value) for name in table if (value := values.pop(name)) is not None}
        isolation = values.pop("isolation")
        if bootstrap is None:
            return _no_source(given)
        cluster = _collect_cluster("", bootstrap, config, further)
        return _build_source(cluster, given, isolation)

    return collect_options("source", [*_cluster_declarations("", required), *declared, isolation_option], collect)


def _no_source(given: Mapping[str, str]) -> dict[str, str]:
    for name in given:
        raise PipelineError(f"--{name} is of a topic, and no broker is named: give --bootstrap-server HOST:PORT")
    return {}


def _build_source(cluster: dict[str, str], given: Mapping[str, str], isolation: str) -> dict[str, str]:
    source = {"startingOffsets": "earliest", "kafka.isolation.level": isolation, **cluster, **given}
    chosen = [name for name in STRATEGIES if name in source]
    if len(chosen) != 1:
        names = " and ".join(f"--{name}" for name in chosen) or "nothing"
        raise PipelineError(f"{names} says what to read: give exactly one of --subscribe, --subscribePattern, --assign")
    check_source_offsets(source)
    if "assign" in source:
        check_assignment(source["assign"])
    return source


def _collect_stream(values: dict[str, Any]) -> StreamOptions:
    names = ("trigger", "query_name", "progress_json", "prometheus", "commit_group")
    return StreamOptions(values.pop("checkpoint_location"), **{name: values.pop(name) for name in names})


_FILE = click.Path(dir_okay=False, path_type=Path)

stream_options = collect_options(
    "stream",
    [
        option(
            "--checkpointLocation",
            "checkpoint_location",
            required=True,
            metavar="DIR",
            help="Directory of the query's state: the next run with it continues where this one stops.",
        ),
        option(
            "--trigger",
            default="availableNow",
            show_default=True,
            group=QUERY_GROUP,
            help="availableNow (read the records that exist, then end), or an interval like '10 seconds' (run on).",
        ),
        option("--queryName", "query_name", group=QUERY_GROUP, help="Name of the query in its progress."),
        option("--progress-json", type=_FILE, group=QUERY_GROUP, help="File that gets a line of JSON for each batch."),
        option(
            "--prometheus",
            type=_FILE,
            group=QUERY_GROUP,
            help="File that holds the progress in Prometheus' text format.",
        ),
        option(
            "--commit-group",
            metavar="GROUP",
            group=QUERY_GROUP,
            help="Consumer group that gets the finished batches' offsets, for tools that show lag.",
        ),
    ],
    _collect_stream,
)


def _collect_names(values: dict[str, Any]) -> TargetNames:
    return TargetNames(values.pop("prefix"), parse_pairs(values.pop("mapped")))


names_options = collect_options(
    "names",
    [
        option("--prefix", default="", group=TARGET_GROUP, help="Prefix of the names of the target's topics."),
        option(
            "--map",
            "mapped",
            multiple=True,
            metavar="A=B",
            group=TARGET_GROUP,
            help="Name topic A B in the target; repeat the option for several.",
        ),
    ],
    _collect_names,
)
