"""A whole broker on one clock, and `kafkacompat instances` that reaches it without a socket."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kafkacompat.cli import main
from kafkacompat.cli.instances import run as run_module
from kafkacompat.cli.requests import NO_SECURITY
from kafkacompat.wire.schema import Request
from tests.kafkacompat.test_broker_over_memory_network import HOST, PORT, World

SERVER = f"{HOST}:{PORT}"


class Connection:
    """A connection of the command line, whose requests turn the clock of the broker."""

    def __init__(self, world: World) -> None:
        self._world = world

    def find_version(self, request: type[Request]) -> int | None:
        return request.VERSIONS.last

    def request(self, request: Request, response: Any) -> Any:
        return self._world.ask(request)

    def close(self) -> None:
        """Nothing to close."""


class InstanceWorld(World):
    """A started broker with the command."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(folder)
        self.run(self.broker.start())

        def connect(host: str, port: int, security: Any = NO_SECURITY) -> Connection:
            assert (host, port) == (HOST, PORT)
            return Connection(self)

        def wait(seconds: float) -> None:
            self.clock.pump([0.01] * int(seconds * 100))

        monkeypatch.setattr(run_module, "BlockingConnection", connect)
        monkeypatch.setattr(run_module, "_NEVER_SET", SimpleNamespace(wait=wait))
        monkeypatch.setattr(run_module, "time", _Time(self.clock.seconds))

    def command(self, *arguments: str, stdin: str | None = None) -> Result:
        """Run `kafkacompat instances`."""
        name, *others = arguments
        return CliRunner().invoke(
            main, ["instances", name, *others, "--bootstrap-server", SERVER], input=stdin, catch_exceptions=False
        )

    def succeed(self, *arguments: str) -> Result:
        """Run the command, which must succeed."""
        result = self.command(*arguments)
        assert result.exit_code == 0, result.output
        return result

    def read(self, *arguments: str) -> Any:
        """Run the command with --json, and return what it writes to standard output."""
        return json.loads(self.succeed(*arguments, "--json").stdout)

    def refuse(self, *arguments: str) -> str:
        """Run the command, which the cluster must refuse; return its one sentence."""
        result = self.command(*arguments)
        assert result.exit_code == 1, (result.exit_code, result.output)
        assert result.stdout == ""
        (line,) = result.stderr.splitlines()
        return line.removeprefix("kafkacompat: ")


class _Time:
    """The module time, on the clock of the broker."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        import time

        self.time = seconds
        self.strftime, self.localtime, self.monotonic = time.strftime, time.localtime, seconds
