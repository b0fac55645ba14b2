"""The options of `kafkacompat produce` and `consume`, as they reach the work."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kafkacompat.cli import main
from kafkacompat.cli.remote.records import consume_options, produce_options
from kafkacompat.cli.remote.records.consume_run import Presentation, Selection
from kafkacompat.cli.remote.records.input_records import NewRecord
from kafkacompat.cli.remote.records.positions import Start, StartKind
from kafkacompat.cli.remote.records.produce_run import Delivery, Input

CLUSTER = ("--bootstrap-server", "kafka:9092")


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, [arguments[0], *CLUSTER, *arguments[1:]])


@pytest.fixture
def consumed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    calls: list[Any] = []
    monkeypatch.setattr(consume_options, "consume", lambda *call: calls.append(call))
    return calls


@pytest.fixture
def produced(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    calls: list[Any] = []
    monkeypatch.setattr(produce_options, "produce", lambda *call: calls.append(call))
    return calls


@pytest.mark.parametrize(
    ("options", "selection"),
    [
        ([], Selection("t")),
        (["--from-beginning", "--follow"], Selection("t", Start(StartKind.EARLIEST), follows=True)),
        (["--offset", "-10", "-n", "3"], Selection("t", Start(StartKind.LAST, 10), most=3)),
        (["--offset", "latest"], Selection("t", Start(StartKind.LATEST))),
        (
            ["--offset", "12", "--partition", "1", "--partition", "0"],
            Selection("t", Start(StartKind.OFFSET, 12), (1, 0)),
        ),
        (["--timestamp", "1700000000000"], Selection("t", Start(StartKind.TIMESTAMP, 1_700_000_000_000))),
        (["--timestamp", "1970-01-01T00:00:01.5Z"], Selection("t", Start(StartKind.TIMESTAMP, 1500))),
        (["--timestamp", "1970-01-01T01:00+01:00"], Selection("t", Start(StartKind.TIMESTAMP, 0))),
        (
            ["--group", "g", "--isolation-level", "read_committed"],
            Selection("t", group="g", isolation="read_committed"),
        ),
    ],
)
def test_selections(consumed: list[Any], options: Sequence[str], selection: Selection) -> None:
    assert invoke("consume", "t", *options).exit_code == 0
    assert consumed[0][1] == selection


def test_a_time_without_a_zone_is_local(consumed: list[Any]) -> None:
    invoke("consume", "t", "--timestamp", "2026-11-27T08:00")
    assert consumed[0][1].start.number == int(datetime(2026, 11, 27, 8).timestamp() * 1000)


def test_presentations(consumed: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "out"
    invoke("consume", "t", "--print", "key, value", "--separator", ":", "--output", str(path))
    invoke("consume", "t", "--schema-registry", "http://r", "--consumer-property", "fetch.min.bytes=5")
    assert consumed[0][2] == Presentation(("key", "value"), ":", path=path)
    assert consumed[1][2] == Presentation(value_decoder="registry", registry="http://r")
    assert consumed[1][3] == {"fetch.min.bytes": "5"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--from-beginning", "--offset", "1"], "each say where to start"),
        (["--offset", "ten"], "--offset 'ten' is no offset"),
        (["--offset", "9" * 30], "is no offset"),
        (
            ["--timestamp", "yesterday"],
            "--timestamp 'yesterday' is no time: it takes milliseconds since 1970, or ISO 8601",
        ),
        (
            ["--print", "keys"],
            "--print 'keys' is no field: choose from timestamp, partition, offset, headers, key, value",
        ),
        (["--group", "g", "--partition", "0"], "--group and --partition exclude each other"),
        (["--group", "g", "--offset", "5"], "a group starts at its own offsets"),
        (["--raw", "--json"], "--raw writes nothing but the values"),
        (["--json", "--print", "key"], "--json writes all fields"),
        (["--separator", ":"], "--separator stands between the fields of --print"),
        (["--consumer-property", "x"], "--consumer-property x is not of the form NAME=VALUE"),
    ],
)
def test_bad_options_of_consume(consumed: list[Any], options: Sequence[str], words: str) -> None:
    result = invoke("consume", "t", *options)
    assert (result.exit_code, words in result.output, consumed) == (2, True, []), result.output


def test_inputs(produced: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.touch()
    invoke("produce", "t")
    invoke(
        "produce", "t", str(path), "--key-separator", ":", "--null-marker", "NULL", "--acks", "1", "--header", "a=b=c"
    )
    invoke("produce", "t", "-", "--json", "--partition", "3", "--key", "é", "--producer-property", "linger.ms=9")
    assert produced[0][2:] == (Input((Path("-"),)), Delivery(), {})
    constant = NewRecord(None, None, [("a", b"b=c")])
    lines = Input((path,), key_separator=":", null_marker="NULL", constant=constant)
    assert produced[1][2:] == (lines, Delivery(acks="1"), {})
    as_json = Input((Path("-"),), is_json=True, constant=NewRecord(None, "é".encode(), None, 3))
    assert produced[2][2:] == (as_json, Delivery(), {"linger.ms": "9"})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--key-separator", ""], "--key-separator is empty"),
        (["--json", "--key-separator", ":"], "--json reads all fields from the line"),
        (["--whole", "--null-marker", "x"], "--whole reads no lines"),
        (["--acks", "2"], "'2' is not one of"),
        (["--header", "a"], "--header a is not of the form NAME=VALUE"),
        (["no-such-file"], "does not exist"),
    ],
)
def test_bad_options_of_produce(produced: list[Any], options: Sequence[str], words: str) -> None:
    result = invoke("produce", "t", *options)
    assert (result.exit_code, words in result.output, produced) == (2, True, []), result.output


@pytest.mark.parametrize(
    ("name", "reason"), [("h\udcff", "'h\\udcff' is not valid: the name is no UTF-8"), ("a\0b", "has a NUL character")]
)
def test_a_header_that_librdkafka_cannot_send(produced: list[Any], name: str, reason: str) -> None:
    result = invoke("produce", "t", "--header", f"{name}=x")
    assert (result.exit_code, produced) == (2, [])
    assert reason in result.stderr


def test_headers_keep_their_spaces_and_may_share_a_name(produced: list[Any]) -> None:
    invoke("produce", "t", "--header", "a= 1 ", "--header", "a=2", "--header", "b=")
    ((_, _, source, _, _),) = produced
    assert source.constant.headers == [("a", b" 1 "), ("a", b"2"), ("b", b"")]


def test_arguments_may_be_bytes_that_are_no_utf_8(produced: list[Any]) -> None:
    invoke("produce", "t", "--key", "k\udcff", "--header", "h=\udcff")
    ((_, _, source, _, _),) = produced
    assert source.constant == NewRecord(None, b"k\xff", [("h", b"\xff")])


def test_the_topic_may_be_an_option_as_in_kafkas_tools(
    consumed: list[Any], produced: list[Any], tmp_path: Path
) -> None:
    path = tmp_path / "orders.txt"
    path.touch()
    for arguments in (["consume", "--topic", "t"], ["produce", "--topic", "t", str(path)], ["produce", "t", str(path)]):
        invoke(*arguments)
    assert consumed[0][1].topic == "t"
    assert [(topic, source.paths) for _, topic, source, _, _ in produced] == [("t", (path,)), ("t", (path,))]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["consume"], "name a topic"),
        (["produce"], "name a topic"),
        (["consume", "t", "--topic", "u"], "name the topic once: as an argument or with --topic"),
    ],
)
def test_a_command_names_one_topic(arguments: list[str], sentence: str) -> None:
    result = invoke(*arguments)
    assert (result.exit_code, sentence in result.stderr) == (2, True)
