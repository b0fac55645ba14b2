"""Programmes that run until a test ends them: Java's over the frameworks' jars, Python's over packages of their own."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from compat_tests.brokers import Broker
from compat_tests.java_tools import compile_java, java_command
from compat_tests.processes import list_descendants
from compat_tests.raw_client import RawClient
from compat_tests.waiting import until
from kafkacompat.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from spark_integration.runtime.maven import BUILD, build_once

if TYPE_CHECKING:
    from typing_extensions import Self

Value = TypeVar("Value")

FOLDER = Path(__file__).resolve().parent
POM = FOLDER / "pom.xml"
# AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, TxnOffsetCommit
TRANSACTIONAL = {24, 25, 26, 28}
SHOWN_CHARACTERS = 4000
# A server of many classes takes minutes to start on a busy machine.
START_SECONDS = 240
# A JVM that runs for a minute beside a broker, on two cores.
JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class Programme:
    """One process, whose output goes to *log*. Used as a context it leaves nothing running."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> None:
        self._log = log
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def log(self) -> str:
        """Its output so far, with that of earlier processes in the same file."""
        return self._log.read_text(errors="replace")

    def refuse_ended(self) -> None:
        """Raise AssertionError with the end of its log if it runs no more."""
        code = self._process.poll()
        assert code is None, f"{self._process.args!r} ended with code {code}:\n{self.log[-SHOWN_CHARACTERS:]}"

    def until(self, check: Callable[[], Value], timeout_seconds: float = 120) -> Value:
        """Ask *check* until its answer is true, as long as the programme runs, and return that answer."""

        def still_runs() -> Value:
            self.refuse_ended()
            return check()

        try:
            return until(still_runs, timeout_seconds=timeout_seconds)
        except AssertionError as problem:
            raise AssertionError(f"{problem}\n{self.log[-SHOWN_CHARACTERS:]}") from problem

    def wait(self, timeout_seconds: float) -> int:
        """Wait until it ends by itself and return its exit code."""
        return self._process.wait(timeout_seconds)

    def stop(self, timeout_seconds: float = 60) -> int:
        """Ask it to end (SIGTERM) and return its exit code."""
        self._process.terminate()
        return self.wait(timeout_seconds)

    def kill(self) -> None:
        """End it and its descendants with SIGKILL, unless it has ended."""
        descendants = [] if self._process.poll() is not None else list_descendants(self._process.pid)
        self._process.kill()
        for pid in descendants:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()


def start_java(
    main_class: str,
    arguments: Sequence[str],
    log: Path,
    *,
    source: Path | None = None,
    heap: str = "256m",
    pom: Path = POM,
    jvm: Sequence[str] = (),
) -> Programme:
    """Start a class of the frameworks' jars (those of *pom*), or of a source file of ours."""
    extra = [compile_java(source, pom=pom)] if source else []
    command = java_command(main_class, arguments, jvm=(*JVM, *jvm), heap=heap, extra_class_path=extra, pom=pom)
    return Programme(command, log)


def python_of(interpreter: str, requirements: Sequence[str], *options: str) -> Path:
    """Return the Python of a virtual environment with *requirements*, made the first time."""
    digest = hashlib.sha256(" ".join([interpreter, *requirements, *options]).encode()).hexdigest()[:12]
    target = BUILD / "frameworks" / f"python-{digest}"

    def make(partial: Path) -> None:
        subprocess.run([interpreter, "-m", "venv", str(partial)], check=True)
        pip = [str(partial / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, *options, *requirements], check=True)

    build_once(target, make)
    return target / "bin" / "python"


def environment_with(given: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without what names its own packages, for a Python of :func:`python_of`."""
    inherited = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return {**inherited, **given}


def write_properties(path: Path, properties: Mapping[str, str]) -> Path:
    """Write a properties file and return its path."""
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return path


def serves_transactions(broker: Broker) -> bool:
    """Return whether the broker lists the APIs that a transaction of records and offsets needs."""
    with RawClient(broker.port) as client:
        answer = client.call(ApiVersionsRequest(), ApiVersionsResponse, 0)
    return {api.api_key for api in answer.api_keys} >= TRANSACTIONAL
