"""`kafkacompat consume` and its options."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from kafkacompat.cli.remote.completion import complete_topics
from kafkacompat.cli.remote.options import Target, connection_options, parse_settings, require_topic_name, topic_option

_FIELDS = "timestamp, partition, offset, headers, key, value"


@click.command()
@click.argument("topic", required=False, shell_complete=complete_topics)
@topic_option(complete_topics)
@connection_options("Brokers of the cluster.")
@click.option("--from-beginning", is_flag=True, help="Start at the first record: short for --offset earliest.")
@click.option(
    "--offset",
    metavar="OFFSET",
    help="Start at this offset, at earliest or latest, or with -N at the last N records, in each partition.",
)
@click.option(
    "--timestamp",
    metavar="TIME",
    help="Start at the first record from this time on: milliseconds since 1970, or ISO 8601 in local time or with a zone.",
)
@click.option(
    "--partition",
    "partitions",
    multiple=True,
    metavar="NUMBER",
    type=click.IntRange(min=0),
    help="Partition to read. May be given many times.",
)
@click.option("--group", metavar="GROUP", help="Read as a member of this group, and commit its offsets.")
@click.option(
    "-n", "--max-messages", "most", type=click.IntRange(min=1), metavar="COUNT", help="End after this many records."
)
@click.option("--follow", "follows", is_flag=True, help="Wait for more records at the end, until an interrupt.")
@click.option(
    "--isolation-level",
    "isolation",
    type=click.Choice(["read_uncommitted", "read_committed"]),
    default="read_uncommitted",
    show_default=True,
    help="read_committed leaves out the records of aborted transactions and stops before open ones.",
)
@click.option("--print", "fields", metavar="FIELD,...", help=f"Fields of a line, shown in this order: {_FIELDS}.")
@click.option("--separator", metavar="TEXT", help="Text between the fields.  [default: a tab]")
@click.option("--json", "as_json", is_flag=True, help="Write each record as JSON with all fields.")
@click.option("--raw", "is_raw", is_flag=True, help="Write the bytes of the values, with nothing between them.")
@click.option("--output", "path", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file.")
@click.option(
    "--schema-registry",
    "registry",
    metavar="URL",
    help="Schema registry that decodes the values, unless --value-decoder names another format.",
)
@click.option(
    "--schema-registry-config",
    "registry_config",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Properties for the registry: basic.auth.user.info, bearer.auth.token, ssl.ca.location and others.",
)
@click.option(
    "--value-decoder",
    type=click.Choice(["text", "json", "registry"]),
    help="Format of the values.  [default: text, or registry with --schema-registry]",
)
@click.option(
    "--key-decoder",
    type=click.Choice(["text", "json", "registry"]),
    default="text",
    show_default=True,
    help="Format of the keys.",
)
@click.option(
    "--consumer-property",
    "properties",
    metavar="NAME=VALUE",
    multiple=True,
    help="A property of librdkafka's consumer. May be given many times.",
)
def consume(
    topic: str | None,
    named_topic: str | None,
    bootstrap: str,
    command_config: Path | None,
    as_json: bool,
    properties: tuple[str, ...],
    **options: Any,
) -> None:
    """Write the records of TOPIC to standard output.

    Without --follow the command ends at the records that exist when it starts, and starts at the first one. With
    --follow it starts at the end and waits for records. Both start elsewhere with --from-beginning, --offset or --timestamp.
    A group starts at its committed offsets; for a partition that has none it starts as described.

    In a pipe or file the bytes of keys and values are written as they are. In a terminal control characters and bytes
    that are no UTF-8 are escaped. With --json bytes that are no UTF-8 are in base64, in a field key_base64 or
    value_base64, and `kafkacompat produce --json` reads such lines.

    The exit code is 0 for success, 1 if the cluster refuses the request or a key or value cannot be decoded, 2 if the
    options are not valid or no broker answers, and 130 after an interrupt without --follow. The command needs confluent-kafka
    (the extra `cli`), and for a registry also fastavro, protobuf and grpcio-tools (the extra `schemas`).

    \b
    Examples:
      kafkacompat consume orders --bootstrap-server localhost:9092
      kafkacompat consume orders --bootstrap-server localhost:9092 --follow --print key,value
      kafkacompat consume orders --bootstrap-server localhost:9092 --offset -10 --json
      kafkacompat consume orders --bootstrap-server localhost:9092 --timestamp 2026-11-27T08:00 -n 100
      kafkacompat consume orders --bootstrap-server localhost:9092 --schema-registry http://localhost:8081
    """
    from kafkacompat.cli.remote.records.consume_options import run

    if topic is not None and named_topic is not None:
        raise click.UsageError("name the topic once: as an argument or with --topic")
    chosen = require_topic_name(topic if named_topic is None else named_topic)
    given = parse_settings(properties, "--consumer-property")
    sys.exit(run(Target(bootstrap, command_config, as_json), chosen, properties=given, **options))
