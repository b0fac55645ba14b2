"""Jars fetched by Maven once for each pom.xml, and kept under ``build/jars``."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

BUILD = Path(__file__).resolve().parents[2] / "build"


class MissingProgramError(Exception):
    """A program (java, javac, mvn) is not on the PATH; the text says how to install it."""


PACKAGES = {"java": "a JDK 17", "javac": "a JDK 17", "mvn": "Apache Maven"}


def find_program(name: str) -> str:
    """Return the path of *name*; raises MissingProgramError."""
    path = shutil.which(name)
    if path is None:
        raise MissingProgramError(f"{name} is not on the PATH: install {PACKAGES.get(name, name)}")
    return path


def jar_folder(pom: Path) -> Path:
    """Return the folder with every run-time jar that *pom* names, fetching them the first time.

    The folder's name carries a hash of the pom, so that the jars of a changed pom are fetched again. If Maven fails,
    prints its output on standard error and raises subprocess.CalledProcessError.
    """
    digest = hashlib.sha256(pom.read_bytes()).hexdigest()[:12]
    target = BUILD / "jars" / f"{pom.parent.name}-{digest}"
    build_once(target, lambda partial: _copy_dependencies(pom, partial))
    return target


def build_once(target: Path, build: Callable[[Path], None]) -> None:
    """Fill the folder *target* with *build* unless it exists: completely or not at all, even if processes compete."""
    if target.is_dir():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with _lock_file(target.with_name(f"{target.name}.lock")):
        if target.is_dir():
            return
        partial = Path(tempfile.mkdtemp(prefix=target.name, dir=target.parent))
        try:
            build(partial)
            partial.rename(target)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def _copy_dependencies(pom: Path, folder: Path) -> None:
    options = ["-q", "-B", "-f", str(pom), f"-DoutputDirectory={folder}", "-DincludeScope=runtime"]
    command = [find_program("mvn"), *options, "dependency:copy-dependencies"]
    try:
        # Captured, since Maven prints control sequences even where it is told to be quiet.
        subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except subprocess.CalledProcessError as failure:
        print(failure.stdout, file=sys.stderr)
        raise


@contextmanager
def _lock_file(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def main(poms: Sequence[str]) -> int:
    """Fetch the jars of each pom; return the exit code."""
    try:
        for pom in poms:
            jar_folder(Path(pom))
    except MissingProgramError as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
