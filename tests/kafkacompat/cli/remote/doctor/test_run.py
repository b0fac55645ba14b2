"""The output and the exit code of `kafkacompat doctor`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner

from kafkacompat.cli import main
from kafkacompat.cli.remote.doctor import run
from kafkacompat.cli.remote.doctor.verdicts import Verdict, accept, fail, skip, warn


@pytest.fixture
def verdicts(monkeypatch: pytest.MonkeyPatch) -> list[Verdict]:
    given: list[Verdict] = []
    calls: list[Any] = []

    def examine(*call: Any) -> Iterator[Verdict]:
        calls.append(call)
        yield from given

    monkeypatch.setattr(run, "examine", examine)
    return given


def test_lines_and_warnings(verdicts: list[Verdict]) -> None:
    verdicts += [
        accept("resolve", "h is\x1b 1.2.3.4"),
        warn("clock", "it is late", "set it"),
        skip("produce", "not tried"),
    ]
    result = CliRunner().invoke(main, ["doctor", "h:1"])
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        "ok      resolve    h is\\x1b 1.2.3.4",
        "warning clock      it is late: set it",
        "skipped produce    not tried",
    ]


def test_a_failure_is_the_exit_code(verdicts: list[Verdict]) -> None:
    verdicts += [fail("connect", "nothing listens", "start it"), accept("x", "y")]
    result = CliRunner().invoke(main, ["doctor", "h:1", "--json"])
    assert result.exit_code == 1
    assert json.loads(result.output.splitlines()[0]) == {
        "stage": "connect",
        "outcome": "failed",
        "text": "nothing listens",
        "advice": "start it",
    }


def test_an_address_that_is_none() -> None:
    result = CliRunner().invoke(main, ["doctor", "localhost"])
    assert result.exit_code == 2
    assert "'localhost' is not of the form HOST:PORT" in result.output
