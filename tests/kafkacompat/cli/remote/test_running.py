"""What commands do when something goes wrong, and their output."""

from __future__ import annotations

import io
import socket
import sys
from contextlib import closing

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result

from kafkacompat.cli import main
from kafkacompat.cli.lazy_group import open_closed_streams
from kafkacompat.cli.remote.errors import (
    EXIT_DONE,
    EXIT_REFUSED,
    EXIT_UNUSABLE,
    RemoteError,
    explain_missing_library,
    explain_refusal,
    suggest_name,
)
from kafkacompat.cli.remote.output import MOST_RICH_ROWS, Output
from kafkacompat.cli.remote.running import run_guarded
from kafkacompat.cli.requests import NoResponseError, UnservedRequestError
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.cli.remote.world import RemoteWorld
from tests.kafkacompat.cli.test_requests import serve_connection

ROW: dict[str, object] = {"topic": "a\nb", "in_sync": [1, 2], "lag": None, "count": 3}


def run(*arguments: str, server: str | None = None) -> Result:
    environment = {"KAFKACOMPAT_BOOTSTRAP_SERVER": server}
    return CliRunner().invoke(main, arguments, catch_exceptions=False, env=environment)


def test_a_refused_connection_says_what_to_check() -> None:
    with closing(socket.socket()) as bound:
        bound.bind(("127.0.0.1", 0))
        server = f"127.0.0.1:{bound.getsockname()[1]}"
        result = run("topics", "list", server=server)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        f"kafkacompat: no broker answers: {server}: Connection refused, "
        "so check that the broker runs and that the port is right\n"
    )


def test_a_listener_with_tls_is_recognised() -> None:
    alert = bytes.fromhex("15030300")
    with serve_connection(lambda _: alert) as port:
        result = run("topics", "list", server=f"localhost:{port}")
    assert result.exit_code == 2
    assert "the listener speaks TLS, so name security.protocol in a file for --command-config" in result.stderr


@pytest.mark.parametrize(
    ("server", "sentence"), [(None, "Missing option '--bootstrap-server'"), ("x", "'x' is not of")]
)
def test_a_server_that_is_missing_or_wrong(server: str | None, sentence: str) -> None:
    result = run("topics", "list", server=server)
    assert result.exit_code == 2
    assert sentence in result.stderr


def test_problems_are_one_sentence_and_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    for problem, code, sentence in (
        (RemoteError("no\x1b"), EXIT_REFUSED, "no\\x1b"),
        (NoResponseError("gone"), EXIT_UNUSABLE, "no broker answers: gone"),
        (UnservedRequestError("it serves none"), EXIT_REFUSED, "the broker cannot do this: it serves none"),
        (ValueError("bad"), EXIT_UNUSABLE, "bad"),
        (OSError(28, "No space left on device"), EXIT_REFUSED, "the output cannot be written: the disk is full"),
    ):

        def fail(problem: Exception = problem) -> int:
            raise problem

        assert run_guarded(fail) == code
        assert capsys.readouterr().err == f"kafkacompat: {sentence}\n"


def test_a_closed_pipe_ends_a_command_quietly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class ClosedPipe(io.StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", ClosedPipe())
    assert run_guarded(lambda: Output(as_json=True).write_json([])) == EXIT_DONE
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "subject"), [(["topics", "a\udcff"], "the argument 'a\\udcff'"), (["users"], "the input")]
)
def test_a_text_that_is_no_utf_8_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], subject: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["kafkacompat", *arguments])
    assert run_guarded(lambda: len("secret\udcff".encode())) == EXIT_UNUSABLE
    assert capsys.readouterr().err == (
        f"kafkacompat: {subject} is no UTF-8: correct it, or check the locale of the shell\n"
    )


def test_closed_standard_streams_are_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    open_closed_streams()
    assert sys.stdin.read() == ""
    with sys.stdin, sys.stdout, sys.stderr:
        Output(as_json=False).write_rows([ROW], "")


def test_a_terminal_gets_a_table_without_empty_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    Output(as_json=False).write_rows([ROW], "", styles={"count": lambda _: "red"})
    header, _, row = (line.split() for line in click.unstyle(capsys.readouterr().out).splitlines() if line.strip())
    assert header == ["topic", "in", "sync", "count"]
    assert row == ["a\\nb", "1,2", "3"]
    Output(as_json=False).write_rows([ROW] * (MOST_RICH_ROWS + 1), "")
    assert capsys.readouterr().out.splitlines()[0].split() == ["topic", "in_sync", "lag", "count"]


def test_a_pipe_gets_aligned_text_and_sentences_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(as_json=False)
    output.write_rows([ROW], "", "Title")
    assert capsys.readouterr().out.splitlines() == [
        "Title",
        "topic  in_sync  lag  count",
        "a\\nb   1,2      -        3",
    ]
    output.write_rows([], "There are none")
    assert capsys.readouterr() == ("", "There are none\n")
    Output(as_json=True).write_rows([], "There are none")
    assert capsys.readouterr() == ("[]\n", "")


def test_refusals_in_words() -> None:
    assert explain_refusal(ErrorCode.INVALID_CONFIG, "x is no config.") == "x is no config"
    assert explain_refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.").endswith("acls add`")
    assert explain_refusal(ErrorCode.INVALID_CONFIG) == "INVALID_CONFIG"
    assert explain_refusal(9999) == "error 9999"
    assert suggest_name("ordres", ["orders", "payments"]) == " (did you mean orders?)"
    assert suggest_name("x", ["orders"]) == ""
    assert explain_missing_library("confluent-kafka") == (
        "confluent-kafka is not installed: run pip install '.[cli]' in a clone of kafkacompat"
    )


def complete(*arguments: str, incomplete: str = "") -> list[str]:
    completion = ShellComplete(main, {}, "kafkacompat", "_KAFKACOMPAT_COMPLETE")
    return [item.value for item in completion.get_completions(list(arguments), incomplete)]


def test_a_shell_completes_commands_and_names(world: RemoteWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    from kafkacompat.cli.remote import completion

    world.fill("orders", 1)
    world.make_topic("payments")
    world.succeed("groups", "reset", "billing", "--topic", "orders", "--to-latest", "--execute")
    assert "topics" in complete(incomplete="top")
    monkeypatch.setattr(completion, "_connect", lambda _: world.connect_cluster())
    assert complete("topics", "describe", incomplete="or") == ["orders"]
    assert complete("topics", "delete", "--topic", incomplete="p") == ["payments"]
    assert complete("groups", "describe") == ["billing"]


def test_without_a_broker_a_shell_completes_no_names() -> None:
    assert complete("topics", "describe", "--bootstrap-server", "nonsense") == []
    assert complete("topics", "describe") == []


def test_every_command_has_a_help_text_and_an_example() -> None:
    groups = ("topics", "groups", "configs", "acls", "users", "quotas", "transactions")
    for name in groups:
        group = main.get_command(click.Context(main), name)
        assert isinstance(group, click.Group)
        for command in group.commands.values():
            assert command.help and f"kafkacompat {name} {command.name} " in command.help
