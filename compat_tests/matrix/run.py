"""Runs rows: installs the client, then its programme on each broker behind a recording proxy."""

from __future__ import annotations

import contextlib
import datetime
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

import kafkacompat
from compat_tests.brokers import BROKERS, ROOT, Broker
from compat_tests.matrix.driver import Launch
from compat_tests.matrix.install import NotInstalledError, try_installing
from compat_tests.matrix.programme import FAILED, PARTITIONS, Cell, Outcome, Programme
from compat_tests.matrix.proxy import RecordingProxy
from compat_tests.matrix.recording import spoken_name
from compat_tests.matrix.rows import Row
from compat_tests.ports import free_port
from compat_tests.raw_client import RawClient
from compat_tests.waiting import until
from kafkacompat.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkacompat.wire.apis.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafkacompat.wire.errors import ErrorCode
from spark_integration.runtime.maven import BUILD

Tell = Callable[[str], None]


class AnyStage(Protocol):
    """What a row runs on."""

    @property
    def kind(self) -> str: ...
    def perform(self, row: Row, launch: Launch, tell: Tell) -> Outcome: ...


class Stage:
    """A broker behind a proxy, whose address it advertises; started again when it has died."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.port = free_port()
        properties = {
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "num.partitions": str(PARTITIONS),
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.num.partitions": "4",
        }
        self._folder = folder
        self._broker: Broker = BROKERS[kind](folder / kind, properties)
        self._proxy = RecordingProxy(self.port, self._broker.port)

    def __enter__(self) -> Stage:
        self._broker.start()
        make_internal_topics(self._broker.port)
        return self

    def __exit__(self, *_: object) -> None:
        self._proxy.close()
        self._broker.stop()

    def perform(self, row: Row, launch: Launch, tell: Tell) -> Outcome:
        """Run one client's programme."""
        if self._broker.process is not None and self._broker.process.poll() is not None:
            self._broker.start()
        said = self._folder / f"{self.kind}-clients"
        said.mkdir(exist_ok=True)
        served = served_apis(self._broker.port)
        programme = Programme(row.name, launch, self._proxy, f"127.0.0.1:{self.port}", said, served)
        return programme.run(row.features, lambda step: tell(f"{self.kind}: {step}"))


def served_apis(port: int) -> frozenset[int]:
    """Ask a broker for the keys of the APIs that it serves."""
    with RawClient(port) as client:
        answer = client.call(ApiVersionsRequest(), ApiVersionsResponse, 0)
    return frozenset(api.api_key for api in answer.api_keys)


def make_internal_topics(port: int) -> None:
    """Have the topics of offsets and transactions made, as on a broker that has been running for a while."""
    with RawClient(port) as client:
        for key_type in (0, 1):

            def is_made(key_type: int = key_type) -> bool:
                answer = client.call(
                    FindCoordinatorRequest(key="matrix", key_type=key_type), FindCoordinatorResponse, 1
                )
                return answer.error_code != ErrorCode.COORDINATOR_NOT_AVAILABLE

            until(is_made)


@contextmanager
def start_stages(kinds: tuple[str, ...] = tuple(BROKERS)) -> Iterator[list[Stage]]:
    """Give a running broker of each kind, in folders that are gone afterwards."""
    with run_folder() as folder, ExitStack() as stack:
        yield [stack.enter_context(Stage(kind, folder)) for kind in kinds]


@contextmanager
def run_folder() -> Iterator[Path]:
    """Give a folder for one run, which is gone afterwards."""
    parent = BUILD / "matrix"
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_row(row: Row, on: Sequence[AnyStage], tell: Tell) -> dict[str, Any]:
    """Return the results of a run of *row*, in the report's shape."""
    result: dict[str, Any] = {
        "title": row.title,
        "date": f"{datetime.date.today()}",
        "broker_version": broker_version(),
    }
    tell("installing")
    try:
        launch = try_installing(row.install)
    except NotInstalledError as problem:
        return {**result, "not_installed": str(problem)}
    return {**result, "brokers": {stage.kind: report_outcome(row, stage.perform(row, launch, tell)) for stage in on}}


def report_outcome(row: Row, outcome: Outcome) -> Mapping[str, Any]:
    """Return the report's entry of one client on one broker; failures that are the client's own fault say so."""
    versions = {spoken_name(key): sorted(seen) for key, seen in sorted(outcome.wire.versions.items())}
    cells = {
        step: Cell(cell.outcome, f"{row.limits[step]}: {cell.why}")
        if cell.outcome == FAILED and step in row.limits
        else cell
        for step, cell in outcome.cells.items()
    }
    return {"cells": cells, "wire": outcome.wire.summary(), "versions": versions}


@functools.cache
def broker_version() -> str:
    """Return the release, and the commit where there is one: that of when it was first asked, as the brokers run on."""
    version = f"kafkacompat {kafkacompat.__version__}"
    with contextlib.suppress(OSError):
        command = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return f"{version} ({done.stdout.strip()})"
    return version
