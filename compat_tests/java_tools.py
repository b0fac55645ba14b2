"""Apache Kafka's Java programs, of 4.3.1 unless said otherwise: fetched by Maven, run as processes of their own."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Sequence
from pathlib import Path

from spark_integration.runtime.maven import BUILD, build_once, find_program, jar_folder

POM = Path(__file__).resolve().parent / "java" / "pom.xml"

# A JVM of the tests lives for seconds: one collector thread and the quick compiler start it soonest.
SHORT_LIVED = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
# A JVM writes its words on an unfit archive of classes to standard output by default.
_QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")


def kafka_class_path(pom: Path = POM) -> str:
    """Return the class path of all jars that *pom* names (a wildcard over one folder)."""
    return f"{jar_folder(pom)}/*"


def class_archive() -> Path:
    """Return where the classes of 4.3.1 lie as a JVM has them in memory, once `compat_tests.class_data` has made that."""
    return BUILD / "class-data" / jar_folder(POM).name / "classes.jsa"


def _class_data(jvm: Sequence[str], pom: Path, extra_class_path: Sequence[Path]) -> Sequence[str]:
    """Options with which a JVM that is soon over starts in half the time; it fits this one class path alone."""
    if jvm is not SHORT_LIVED or pom != POM or extra_class_path or not class_archive().exists():
        return ()
    return (f"-XX:SharedArchiveFile={class_archive()}", *_QUIET)


def java_command(
    main_class: str,
    arguments: Sequence[str] = (),
    *,
    jvm: Sequence[str] = SHORT_LIVED,
    heap: str = "256m",
    extra_class_path: Sequence[Path] = (),
    pom: Path = POM,
) -> list[str]:
    """Return the command line that runs *main_class* with Kafka's jars."""
    class_path = ":".join([*(str(path) for path in extra_class_path), kafka_class_path(pom)])
    shared = _class_data(jvm, pom, extra_class_path)
    return [find_program("java"), f"-Xmx{heap}", *jvm, *shared, "-cp", class_path, main_class, *arguments]


def run_java(
    main_class: str,
    arguments: Sequence[str] = (),
    *,
    stdin: str | None = None,
    timeout_seconds: float = 120,
    check: bool = True,
    jvm: Sequence[str] = SHORT_LIVED,
    heap: str = "256m",
    extra_class_path: Sequence[Path] = (),
    pom: Path = POM,
) -> subprocess.CompletedProcess[str]:
    """Run one Java program to its end and return it with ``stdout`` and ``stderr`` as text.

    With ``check`` an exit code other than 0 raises AssertionError with the program's output.
    """
    command = java_command(main_class, arguments, jvm=jvm, heap=heap, extra_class_path=extra_class_path, pom=pom)
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=timeout_seconds, check=False)
    if check and done.returncode != 0:
        words = f"{main_class} {' '.join(arguments)}"
        raise AssertionError(f"{words}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def compile_java(*sources: Path, pom: Path = POM) -> Path:
    """Compile source files against the jars of *pom* and return the folder of their classes (kept by content)."""
    content = b"".join(path.read_bytes() for path in (*sources, pom))
    target = BUILD / "classes" / f"{sources[0].stem}-{hashlib.sha256(content).hexdigest()[:12]}"
    build_once(target, lambda folder: _run_javac(sources, pom, folder))
    return target


def _run_javac(sources: Sequence[Path], pom: Path, folder: Path) -> None:
    files = [str(source) for source in sources]
    command = [find_program("javac"), "-nowarn", "-cp", kafka_class_path(pom), "-d", str(folder), *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{sources[0].name} does not compile:\n{done.stderr}")
