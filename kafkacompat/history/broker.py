"""The broker that a run starts, kills and restarts, and the request that a run sends to any broker beforehand."""

from __future__ import annotations

import contextlib
import select
import shlex
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from kafkacompat.history.client import pause
from kafkacompat.history.ports import free_port
from kafkacompat.storage.files.os_errors import describe_error
from kafkacompat.wire import compiler
from kafkacompat.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkacompat.wire.headers import ResponseHeader, encode_request
from kafkacompat.wire.primitives import MalformedError

END_TXN, TXN_OFFSET_COMMIT = 26, 28
ANSWER_TIMEOUT_S = 10.0
RETRY_AFTER_S = 0.2
LONGEST_START_S = 120.0
LONGEST_STOP_S = 60.0

PROPERTIES = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "2000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "500",
    "log.segment.bytes": str(1 << 20),
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}


class RunError(Exception):
    """A run cannot begin or continue; the text is a sentence."""


class OwnBrokers(Protocol):
    """The brokers that a run starts, kills and stops."""

    @property
    def bootstrap(self) -> str:
        """Value of bootstrap.servers."""

    def start(self) -> None:
        """Start and wait until clients are served; raises RunError."""

    def check(self) -> None:
        """Raise RunError if a process ended by itself."""

    def restart(self) -> None:
        """Kill a broker with SIGKILL and start it again; raises RunError."""

    def stop(self) -> None:
        """Stop all processes."""


class StartedBroker:
    """One node that `kafkacompat serve` runs; it keeps its folder and its port."""

    def __init__(self, folder: Path, overrides: Mapping[str, str]) -> None:
        self._folder = folder
        self._log = folder / "broker.log"
        self.bootstrap = f"127.0.0.1:{free_port()}"
        self._properties = {
            "listeners": f"PLAINTEXT://{self.bootstrap}",
            "log.dirs": str(folder / "data"),
            **PROPERTIES,
            **overrides,
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start and wait until it is ready; raises RunError."""
        self._folder.mkdir(exist_ok=True)
        options = [word for name, value in self._properties.items() for word in ("--override", f"{name}={value}")]
        command = [sys.executable, "-m", "kafkacompat", "serve", *options]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, start_new_session=True
            )
        output = self._process.stdout
        assert output is not None
        # The ready line is the only one; without it the process has ended.
        if not select.select([output], [], [], LONGEST_START_S)[0]:
            raise RunError(f"the broker is not ready after {LONGEST_START_S:g} s: see {self._log}")
        if not output.readline():
            raise RunError(f"the broker does not start: see {self._log}")

    def check(self) -> None:
        """Raise RunError if the broker ended by itself."""
        if self._process is not None and (code := self._process.poll()) is not None:
            raise RunError(f"the broker ended by itself with code {code}: see {self._log}")

    def restart(self) -> None:
        """Kill the broker with SIGKILL and start it again."""
        self.kill()
        self.start()

    def kill(self) -> None:
        """Kill the broker with SIGKILL, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process = None

    def stop(self) -> None:
        """Stop the broker by SIGTERM, or by SIGKILL if that takes too long."""
        if self._process is not None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(LONGEST_STOP_S)
            self.kill()


def run_restart_command(command: str, log: Path) -> None:
    """Run the user's command that kills and starts a broker; raises RunError.

    Processes that it starts may continue and keep its output open, so the output is a file.
    """
    with log.open("ab") as output:
        running = subprocess.Popen(
            command, shell=True, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    try:
        code = running.wait(LONGEST_START_S)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait()
        raise RunError(f"{shlex.quote(command)} has not ended after {LONGEST_START_S:g} s: see {log}") from None
    if code:
        raise RunError(f"{shlex.quote(command)} ended with code {code}: see {log}")


def wait_for_broker(bootstrap: str, *, is_encrypted: bool) -> None:
    """Wait until the broker answers; raises RunError after LONGEST_START_S."""
    deadline = time.monotonic() + LONGEST_START_S
    while True:
        try:
            serves_transactions(bootstrap, is_encrypted=is_encrypted)
        except RunError as problem:
            if time.monotonic() > deadline:
                raise RunError(f"{problem}, for {LONGEST_START_S:g} s") from problem
            pause(RETRY_AFTER_S)
        else:
            return


def serves_transactions(bootstrap: str, *, is_encrypted: bool = False) -> bool:
    """Return whether the broker serves EndTxn and TxnOffsetCommit; with TLS, assume so. Raises RunError without an answer."""
    problems = []
    for server in bootstrap.split(","):
        host, _, port = server.strip().rpartition(":")
        if not host or not port.isdecimal():
            raise RunError(f"bootstrap server {server!r} is not of the form HOST:PORT")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), ANSWER_TIMEOUT_S) as connection:
                if is_encrypted:
                    return True
                apis = {api.api_key for api in _request_versions(connection).api_keys}
        except (OSError, OverflowError, MalformedError, EOFError) as problem:
            problems.append(describe_error(problem) or "it closes the connection")
        else:
            return {END_TXN, TXN_OFFSET_COMMIT} <= apis
    raise RunError(f"no broker answers at {bootstrap}: {'; '.join(problems)}")


def _request_versions(connection: socket.socket) -> ApiVersionsResponse:
    request = encode_request(ApiVersionsRequest(), 0, 1, "kafkacompat-verify")
    connection.sendall(struct.pack(">i", len(request)) + request)
    with connection.makefile("rb") as answers:
        (size_bytes,) = struct.unpack(">i", _check_size(answers.read(4), 4))
        frame = _check_size(answers.read(size_bytes), size_bytes)
    _, position = compiler.find_reader(ResponseHeader, 0)(frame, 0)
    answer: ApiVersionsResponse = compiler.find_reader(ApiVersionsResponse, 0)(frame, position)[0]
    return answer


def _check_size(data: bytes, size_bytes: int) -> bytes:
    if len(data) < size_bytes:
        raise EOFError
    return data
