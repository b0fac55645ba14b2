"""A real standalone cluster on this machine, from the pyspark package: one master, two workers, one core and 1 GB each.

Its processes start in folders of their own and without PYTHONPATH, so executors know only the code that was sent to
them. For pyspark and the libraries of the extra they use the Python of the tests.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from compat_tests.processes import is_alive
from compat_tests.waiting import until

if TYPE_CHECKING:
    from typing_extensions import Self

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
HOST = "127.0.0.1"
WORKERS = 2
START_SECONDS = 120
# Settings that a test's own session, or the user, has made for Spark are hidden from the cluster.
OTHERS = re.compile(r"(PYTHON|SPARK_|PYSPARK_)")


def make_environment(**further: str) -> dict[str, str]:
    """Return the environment of a process of the cluster, or of a driver: on loopback, with the Python of the tests."""
    kept = {name: value for name, value in os.environ.items() if not OTHERS.match(name)}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"
    return {**kept, "PATH": path, "SPARK_LOCAL_IP": HOST, **further}


class Daemon:
    """A master or a worker; its executors are in its process group and end with it."""

    def __init__(self, folder: Path, name: str, arguments: Sequence[str]) -> None:
        self.folder = folder / name
        self.folder.mkdir(parents=True)
        self.log = folder / f"{name}.log"
        command = [str(SPARK_CLASS), *arguments, "--host", HOST, "--port", "0", "--webui-port", "0"]
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=make_environment(SPARK_DAEMON_MEMORY="256m"),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_for_matches(self, pattern: str) -> list[str]:
        """Wait until the log matches *pattern*, and return all matches."""

        def find_matches() -> list[str]:
            assert is_alive(self.process.pid), self.log.read_text(errors="replace")[-4000:]
            return re.findall(pattern, self.log.read_text(errors="replace"))

        return until(find_matches, timeout_seconds=START_SECONDS)

    def kill(self) -> None:
        """End the daemon alone, as a crash does; its executors notice it and end by themselves."""
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        """End the daemon and everything that it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class SparkCluster:
    """A master and its workers, in *folder*; as a context it leaves no process running."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.daemons: list[Daemon] = []
        self.url = ""

    @property
    def workers(self) -> list[Daemon]:
        return self.daemons[1:]

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for daemon in reversed(self.daemons):
            daemon.end()

    def _start(self) -> None:
        master = self._daemon("master", ["org.apache.spark.deploy.master.Master"])
        self.url = master.wait_for_matches(r"Starting Spark master at (spark://\S+)")[0]
        for number in range(WORKERS):
            worker = ["org.apache.spark.deploy.worker.Worker", "--cores", "1", "--memory", "1g"]
            self._daemon(f"worker{number}", [*worker, "--work-dir", str(self.folder / f"work{number}"), self.url])
        for worker_daemon in self.workers:
            worker_daemon.wait_for_matches(r"Successfully registered with master")

    def _daemon(self, name: str, arguments: Sequence[str]) -> Daemon:
        daemon = Daemon(self.folder, name, arguments)
        self.daemons.append(daemon)
        return daemon

    def executor_logs(self) -> list[Path]:
        """Return the log of each executor that was ever started, by its worker."""
        return sorted(self.folder.glob("work*/app-*/*/stderr"))
