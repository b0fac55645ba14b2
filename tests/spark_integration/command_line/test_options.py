"""Options of commands, and the values that they become."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from spark_integration.command_line.options import (
    SessionOptions,
    cluster_options,
    parse_pairs,
    session_options,
    source_options,
    stream_options,
)
from spark_integration.errors import PipelineError
from spark_integration.queries.settings import StreamOptions


def parse_words(decorator: Any, *words: str) -> Any:
    """Return the value that a command receives for its options; raises its exceptions."""
    seen: dict[str, Any] = {}
    command = click.command()(decorator(seen.update))
    done = CliRunner().invoke(command, list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    (value,) = seen.values()
    return value


def test_a_session() -> None:
    assert parse_words(session_options) == SessionOptions("local[*]", "1g", {})
    given = parse_words(
        session_options, "--master", "spark://h:7077", "--driver-memory", "2g", "--conf", "a=b=c", "--conf", "d="
    )
    assert given == SessionOptions("spark://h:7077", "2g", {"a": "b=c", "d": ""})


def test_a_bad_pair_is_refused() -> None:
    for word in ("a", "=b", ""):
        with pytest.raises(PipelineError, match="is not NAME=VALUE"):
            parse_pairs([word])


def test_clusters(tmp_path: Path) -> None:
    """Options override the file, and the address overrides both."""
    file = tmp_path / "client.properties"
    file.write_text("client.id=file\nretries=3\nbootstrap.servers=elsewhere:9092\n")
    words = [
        "--target-bootstrap-server",
        "h:1",
        "--target-command-config",
        str(file),
        "--target-option",
        "kafka.client.id=word",
    ]
    assert parse_words(cluster_options("target", "target-"), *words) == {
        "kafka.bootstrap.servers": "h:1",
        "kafka.client.id": "word",
        "kafka.retries": "3",
    }


@pytest.mark.parametrize(
    "name", ["kafka.sasl.jaas.config", "kafka.ssl.key.password", "kafka.ssl.keystore.key", "Kafka.SASL.jaas.config"]
)
def test_secrets_are_refused_on_the_command_line(name: str) -> None:
    words = ["--target-bootstrap-server", "h:1", "--target-option", f"{name}=hunter2"]
    with pytest.raises(PipelineError) as refusal:
        parse_words(cluster_options("target", "target-"), *words)
    assert str(refusal.value) == (
        f"--target-option {name} shows a secret in the list of processes: put it into the file of --target-command-config"
    )


def test_secrets_of_kafka_are_refused_among_sparks_properties() -> None:
    name = "spark.kafka.clusters.a.ssl.truststore.password"
    with pytest.raises(PipelineError, match=f"^--conf {name} shows a secret.*: put it into spark-defaults.conf in"):
        parse_words(session_options, "--conf", f"{name}=hunter2")
    kept = {"spark.kafka.clusters.a.sasl.token.mechanism": "SCRAM-SHA-512", "spark.hadoop.fs.s3a.secret.key": "x"}
    words = [word for name, value in kept.items() for word in ("--conf", f"{name}={value}")]
    assert parse_words(session_options, *words).conf == kept


def test_a_source() -> None:
    assert parse_words(source_options(), "--bootstrap-server", "h:1", "--subscribe", "a,b") == {
        "kafka.bootstrap.servers": "h:1",
        "kafka.isolation.level": "read_committed",
        "startingOffsets": "earliest",
        "subscribe": "a,b",
    }
    words = [
        "--assign",
        "{}",
        "--startingOffsets",
        "latest",
        "--maxOffsetsPerTrigger",
        "5",
        "--isolation",
        "read_uncommitted",
    ]
    assert parse_words(source_options(), "--bootstrap-server", "h:1", *words) == {
        "kafka.bootstrap.servers": "h:1",
        "kafka.isolation.level": "read_uncommitted",
        "startingOffsets": "latest",
        "assign": "{}",
        "maxOffsetsPerTrigger": "5",
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing says what to read"),
        (["--subscribe", "a", "--subscribePattern", "b"], "--subscribe and --subscribePattern"),
    ],
)
def test_exactly_one_way_to_select_topics_is_required(words: list[str], message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        parse_words(source_options(), "--bootstrap-server", "h:1", *words)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("failOnDataLoss", "maybe"),
        ("startingTimestamp", "today"),
        ("minPartitions", "0"),
        ("maxOffsetsPerTrigger", "-1"),
    ],
)
def test_values_that_the_source_would_misread(option: str, value: str) -> None:
    words = ["--bootstrap-server", "h:1", "--subscribe", "a", f"--{option}"]
    with pytest.raises(AssertionError, match=f"Invalid value for '--{option}'"):
        parse_words(source_options(), *words, value)


def test_a_batch_has_an_end_and_no_triggers() -> None:
    words = ["--bootstrap-server", "h:1", "--subscribe", "a"]
    assert parse_words(source_options(stream=False), *words, "--endingOffsets", "latest")["endingOffsets"] == "latest"
    with pytest.raises(AssertionError, match="No such option"):
        parse_words(source_options(stream=False), *words, "--maxOffsetsPerTrigger", "5")


def test_a_stream() -> None:
    words = ["--checkpointLocation", "c", "--trigger", "2 seconds", "--queryName", "q", "--progress-json", "p.jsonl"]
    assert parse_words(stream_options, *words, "--prometheus", "p.prom", "--commit-group", "g") == StreamOptions(
        "c", "2 seconds", "q", Path("p.jsonl"), Path("p.prom"), "g"
    )
    assert parse_words(stream_options, "--checkpointLocation", "c") == StreamOptions("c")
