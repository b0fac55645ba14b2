"""A broker of the run's own, which is killed and started again, and what is asked of any broker beforehand."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from kafkacompat.history.ports import free_port
from kafkacompat.wire import compiler
from kafkacompat.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkacompat.wire.headers import RequestHeader, ResponseHeader

END_TXN, TXN_OFFSET_COMMIT = 26, 28
ASKED_WITHIN_S = 10.0

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
    """A run cannot begin or go on; the text is a sentence."""


class OwnBroker:
    """One node as `kafkacompat serve` makes it, over a folder and a port that it keeps."""

    def __init__(self, folder: Path, overrides: Mapping[str, str]) -> None:
        self._folder = folder
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
        with (self._folder / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, start_new_session=True
            )
        assert self._process.stdout is not None
        # The line that says it is ready is the only one; without one it has ended.
        if not self._process.stdout.readline():
            raise RunError(f"the broker does not start: see {self._folder / 'log'}")

    def check(self) -> None:
        """Raise RunError if it ended by itself."""
        if self._process is not None and (code := self._process.poll()) is not None:
            raise RunError(f"the broker ended by itself with code {code}: see {self._folder / 'log'}")

    def restart(self) -> None:
        """Kill it with SIGKILL and start it again."""
        self.kill()
        self.start()

    def kill(self) -> None:
        """End it with SIGKILL, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def stop(self) -> None:
        """End it in good order."""
        if self._process is not None:
            self._process.terminate()
            self._process.communicate()
            self._process = None


def serves_transactions(bootstrap: str) -> bool:
    """Whether a broker says that it does; raises RunError if nobody answers."""
    host, _, port = bootstrap.split(",")[0].strip().rpartition(":")
    try:
        with socket.create_connection((host, int(port)), ASKED_WITHIN_S) as connection:
            answer = _ask_versions(connection)
    except (OSError, ValueError, EOFError) as problem:
        raise RunError(f"no broker answers at {bootstrap}: {problem or 'it hangs up'}") from problem
    return {END_TXN, TXN_OFFSET_COMMIT} <= {api.api_key for api in answer.api_keys}


def _ask_versions(connection: socket.socket) -> ApiVersionsResponse:
    header = RequestHeader(request_api_key=18, request_api_version=0, correlation_id=1, client_id="kafkacompat-verify")
    request = compiler.encode(header, 1) + compiler.encode(ApiVersionsRequest(), 0)
    connection.sendall(struct.pack(">i", len(request)) + request)
    with connection.makefile("rb") as answers:
        (size_bytes,) = struct.unpack(">i", _exactly(answers.read(4), 4))
        frame = _exactly(answers.read(size_bytes), size_bytes)
    _, position = compiler.reader(ResponseHeader, 0)(frame, 0)
    answer: ApiVersionsResponse = compiler.reader(ApiVersionsResponse, 0)(frame, position)[0]
    return answer


def _exactly(data: bytes, size_bytes: int) -> bytes:
    if len(data) < size_bytes:
        raise EOFError
    return data
