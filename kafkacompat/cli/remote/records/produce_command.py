"""`kafkacompat produce` and its options."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from kafkacompat.cli.remote.completion import complete_topics
from kafkacompat.cli.remote.options import (
    Target,
    connection_options,
    parse_pairs,
    parse_settings,
    require_topic_name,
    topic_option,
)


@click.command()
@click.argument("topic", required=False, shell_complete=complete_topics)
@click.argument(
    "paths",
    metavar="[FILE]...",
    nargs=-1,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
)
@topic_option(complete_topics)
@connection_options("Brokers of the cluster.")
@click.option("--key-separator", metavar="TEXT", help="Each line is a key, this text, and a value.")
@click.option("--null-marker", metavar="TEXT", help="A key or value of exactly this text is null, which deletes a key.")
@click.option("--json", "is_json", is_flag=True, help="Each line is JSON: key, value, headers, partition, timestamp.")
@click.option("--whole", "is_whole", is_flag=True, help="Each FILE is one record.")
@click.option("--key", metavar="TEXT", help="Key of each record that has none of its own.")
@click.option(
    "--header", "headers", multiple=True, metavar="NAME=VALUE", help="Header of each record. May be given many times."
)
@click.option(
    "--partition", metavar="NUMBER", type=click.IntRange(min=0), help="Partition of each record.  [default: by the key]"
)
@click.option(
    "--compression-type",
    "compression",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    show_default=True,
    help="Codec of the batches.",
)
@click.option(
    "--acks",
    type=click.Choice(["all", "-1", "1", "0"]),
    default="all",
    show_default=True,
    help="Replicas that acknowledge a record: all in sync, the leader alone, or none.",
)
@click.option(
    "--producer-property",
    "properties",
    metavar="NAME=VALUE",
    multiple=True,
    help="A property of librdkafka's producer. May be given many times.",
)
def produce(
    topic: str | None,
    named_topic: str | None,
    paths: tuple[Path, ...],
    bootstrap: str,
    command_config: Path | None,
    properties: tuple[str, ...],
    headers: tuple[str, ...],
    **options: Any,
) -> None:
    """Write records to TOPIC: each line of FILE, or of standard input, is the value of a record.

    A bar on standard error shows the progress over files. At the end the command reports how many records the brokers
    acknowledged, and for each reason how many they refused. After an interrupt it waits up to 10 s for acknowledgements of
    the records that it has read.

    A line of --json is an object, as `kafkacompat consume --json` writes it. Bytes that are no UTF-8 stand in base64, in
    key_base64 or value_base64. A value that is no text is written as JSON. Headers are an object, or a list of objects
    with name and value.

    The exit code is 0 if all records are acknowledged, 1 if any is refused or a line cannot be read, 2 if the options
    are not valid or no broker answers, and 130 after an interrupt. The command needs confluent-kafka (the extra
    `cli`).

    \b
    Examples:
      kafkacompat produce orders --bootstrap-server localhost:9092 < orders.txt
      kafkacompat produce orders --bootstrap-server localhost:9092 --key-separator : --compression-type zstd orders.txt
      kafkacompat consume orders --bootstrap-server a:9092 --json | kafkacompat produce orders --bootstrap-server b:9092 --json
      kafkacompat produce images --bootstrap-server localhost:9092 --whole --key cat cat.jpg
    """
    from kafkacompat.cli.remote.records.produce_options import run

    if named_topic is not None and topic is not None:
        # With --topic every argument is a file.
        paths = (Path(topic), *paths)
    chosen = require_topic_name(topic if named_topic is None else named_topic)
    given = parse_settings(properties, "--producer-property")
    constant = parse_pairs(headers, "--header")
    sys.exit(run(Target(bootstrap, command_config), chosen, paths=paths, properties=given, headers=constant, **options))
