"""Brings clients from the registries into ``build/matrix`` and compiles their drivers; existing ones are kept.

Every function returns how the client is started. NotInstalledError says why a client cannot be had on this machine.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from compat_tests.java_tools import SHORT_LIVED
from compat_tests.matrix.driver import Launch
from spark_integration.runtime.maven import BUILD, MissingProgramError, build_once, find_program, jar_folder

MATRIX = BUILD / "matrix"
RUST_CRATES = MATRIX / "rust-crates"
ROOT = Path(__file__).resolve().parents[2]
CLIENTS = ROOT / "compat_tests" / "matrix" / "clients"
INSTALL_SECONDS = 900

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kafkacompat</groupId><artifactId>matrix</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies><dependency>
    <groupId>org.apache.kafka</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
  </dependency></dependencies>
</project>
"""

# Debian packages that kcat needs and that not every machine has.
KCAT_PACKAGES = ("kcat", "librdkafka1", "libyajl2")


class NotInstalledError(Exception):
    """The client cannot be installed on this machine; the text says why, in one sentence."""


def try_installing(install: Callable[[], Launch]) -> Launch:
    """Run *install*; its expected failures become a NotInstalledError."""
    try:
        return install()
    except MissingProgramError as problem:
        raise NotInstalledError(str(problem)) from problem
    except subprocess.TimeoutExpired as problem:
        raise NotInstalledError(f"{problem.cmd[0]} was not done after {problem.timeout:.0f} s") from problem
    except subprocess.CalledProcessError as problem:
        raise NotInstalledError(_find_complaint(problem)) from problem


def java(version: str, era: str, artifact: str = "kafka-clients") -> Launch:
    """Take a release of Apache Kafka's own client from Maven and compile the driver of its era against it."""
    pom = MATRIX / f"{artifact}-{version}" / "pom.xml"
    pom.parent.mkdir(parents=True, exist_ok=True)
    pom.write_text(POM.format(artifact=artifact, version=version))
    return java_over(jar_folder(pom), version, era)


def java_over(jar_files: Path, version: str, era: str) -> Launch:
    """Compile the driver of an era against the jars in a folder."""
    jars = f"{jar_files}/*"
    folder = CLIENTS / "java"
    sources = [folder / "Tell.java", folder / "Texts.java", *sorted((folder / era).glob("*.java"))]
    if era != "v0_8":
        sources.append(folder / "Client.java")
    classes = _name_target(f"java-{version}", sources)
    build_once(classes, lambda partial: _run_command(["javac", "-nowarn", "-cp", jars, "-d", partial, *sources]))
    return Launch([find_program("java"), "-Xmx160m", *SHORT_LIVED, "-cp", f"{classes}:{jars}", "Client"])


def python(script: str, requirements: Sequence[str], version: str = "3.11", options: Sequence[str] = ()) -> Launch:
    """Take Python packages from the package index, for a Python of *version*, and run the driver *script* with them.

    The packages lie in a folder of their own: of the oldest Pythons not all have virtual environments.
    """
    interpreter = _find_python(version)
    digest = hashlib.sha256(" ".join([version, *requirements]).encode()).hexdigest()[:12]
    packages = MATRIX / f"python-{requirements[0].replace('==', '-')}-{digest}"
    pip = [interpreter, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--prefer-binary", "--target"]
    build_once(packages, lambda partial: _run_command([*pip, partial, *requirements]))
    return _make_launch(interpreter, script, options, {"PYTHONPATH": os.pathsep.join([str(packages), str(ROOT)])})


def _make_launch(interpreter: str, script: str, options: Sequence[str], environment: Mapping[str, str]) -> Launch:
    return Launch([interpreter, "-m", f"compat_tests.matrix.clients.python.{script}", *options], environment)


def go(folders: Sequence[str], module: str, version: str, environment: Mapping[str, str] | None = None) -> Launch:
    """Take a Go module from the module proxy and compile the driver in *folders* of ``clients/go`` with it."""
    common = CLIENTS / "go"
    sources = [
        path
        for folder in (common, *(common / subfolder for subfolder in folders))
        for path in sorted(folder.glob("*.go"))
    ]
    return Launch([str(build_go_program(sources, module, version))], environment or {})


def build_go_program(sources: Sequence[Path], module: str, version: str) -> Path:
    """Compile a program in Go that uses a module from the module proxy, unless it is there, and return its path."""
    target = _name_target(f"go-{module.replace('/', '-')}-{version}", sources)

    def build(partial: Path) -> None:
        for source in sources:
            # Sarama's older releases have the name of its former owner.
            text = source.read_text().replace('"github.com/IBM/sarama"', f'"{module}"')
            (partial / source.name).write_text(text)
        _run_command(["go", "mod", "init", "matrix"], partial)
        _run_command(["go", "get", f"{module}@{version}"], partial)
        _run_command(["go", "mod", "tidy"], partial)
        _run_command(["go", "build", "-o", "driver", "."], partial)

    build_once(target, build)
    return target / "driver"


def node(client: str, packages: Mapping[str, str]) -> Launch:
    """Take packages from npm (name -> version) and run the driver ``clients/node/<client>.js`` with them."""
    sources = [CLIENTS / "node" / f"{client}.js", CLIENTS / "node" / "common.js"]
    target = _name_target(f"node-{'-'.join(next(iter(packages.items())))}", sources)

    def build(partial: Path) -> None:
        _copy_files(sources, partial)
        (partial / "package.json").write_text(json.dumps({"private": True, "dependencies": packages}))
        _run_command(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"], partial)

    build_once(target, build)
    return Launch([find_program("node"), str(target / sources[0].name)])


def rust(client: str, dependencies: Mapping[str, str]) -> Launch:
    """Take crates from their registry and compile the driver ``clients/rust/<client>.rs`` with them."""
    folder = CLIENTS / "rust"
    return Launch([str(build_rust_program([folder / f"{client}.rs", folder / "common.rs"], dependencies))])


def require_rdkafka(version: str, *features: str) -> str:
    """Return what Cargo.toml says of the rdkafka crate: it compiles the librdkafka that it brings, without TLS and SASL."""
    words = ", ".join(f'"{feature}"' for feature in ("libz", "zstd", *features))
    return f'{{ version = "={version}", default-features = false, features = [{words}] }}'


def build_rust_program(sources: Sequence[Path], dependencies: Mapping[str, str]) -> Path:
    """Compile the first of *sources* with crates from their registry, unless it is there, and return its path.

    *dependencies* are lines of Cargo.toml: name -> the text after the equals sign. All programs share the compiled crates,
    since librdkafka takes minutes to compile.
    """
    program = sources[0].stem
    lines = [f"{name} = {words}" for name, words in dependencies.items()]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:6]
    # The name of the binary keeps two versions apart that are compiled at the same time.
    binary = f"{program}-{digest}"
    target = _name_target(f"rust-{binary}", sources)

    def build(partial: Path) -> None:
        package = f'[package]\nname = "{binary}"\nversion = "0.0.0"\nedition = "2021"\n[[bin]]\nname = "{binary}"\n'
        text = f'{package}path = "{sources[0].name}"\n[dependencies]\n' + "\n".join(lines) + "\n"
        (partial / "Cargo.toml").write_text(text)
        _copy_files(sources, partial)
        _run_command(["cargo", "build", "--release", "--quiet", "--target-dir", RUST_CRATES], partial)
        shutil.copy(RUST_CRATES / "release" / binary, partial / "driver")

    build_once(target, build)
    return target / "driver"


def librdkafka(carrier: str, options: Sequence[str] = ()) -> Launch:
    """Take the librdkafka that a release of node-rdkafka (npm) carries, and compile it and the driver in C."""
    source = CLIENTS / "c" / "with_librdkafka.c"
    target = _name_target(f"librdkafka-{carrier}", [source])

    def build(partial: Path) -> None:
        _run_command(["npm", "pack", "--silent", f"node-rdkafka@{carrier}"], partial)
        _run_command(["tar", "xzf", f"node-rdkafka-{carrier}.tgz", "package/deps/librdkafka"], partial)
        library = partial / "package" / "deps" / "librdkafka"
        # It is older than the compiler's stricter rules.
        _run_command(["bash", "configure", "--disable-ssl", "--disable-sasl", "--CFLAGS=-fcommon -w"], library)
        _run_command(["make", "-C", "src", "librdkafka.a"], library)
        archive = library / "src" / "librdkafka.a"
        libraries = ["-lz", "-lpthread", "-lrt", "-ldl", "-lm"]
        _run_command(["cc", "-O1", f"-I{archive.parent}", "-o", partial / "driver", source, archive, *libraries])
        shutil.rmtree(partial / "package")

    build_once(target, build)
    return Launch([str(target / "driver"), *options])


def kcat() -> Launch:
    """Take kcat from Debian's packages, unpacked beside the others: nothing is installed on the machine."""
    target = MATRIX / "kcat"

    def build(partial: Path) -> None:
        _run_command(["apt-get", "download", *KCAT_PACKAGES], partial)
        for package in partial.glob("*.deb"):
            _run_command(["dpkg", "-x", package, partial])

    build_once(target, build)
    libraries = os.pathsep.join(map(str, (target / "usr" / "lib").glob("*-linux-*")))
    environment = {"KCAT": str(target / "usr" / "bin" / "kcat"), "KCAT_LIBRARIES": libraries}
    return _make_launch(_find_python("3.11"), "with_kcat", (), {**environment, "PYTHONPATH": str(ROOT)})


def _name_target(name: str, sources: Sequence[Path]) -> Path:
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
    return MATRIX / f"{name}-{digest}"


def _copy_files(sources: Sequence[Path], folder: Path) -> None:
    for source in sources:
        shutil.copy(source, folder)


def _run_command(command: Sequence[str | Path], folder: Path | None = None) -> None:
    subprocess.run(
        [find_program(str(command[0])), *map(str, command[1:])],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        stdin=subprocess.DEVNULL,
    )


@functools.cache
def _find_python(version: str) -> str:
    """Return a Python of *version* that runs: on the PATH, or one that pyenv keeps."""
    candidates = [Path(executable)] if (executable := shutil.which(f"python{version}")) else []
    candidates += sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"), reverse=True)
    for candidate in candidates:
        done = subprocess.run([str(candidate), "-m", "pip", "--version"], capture_output=True, check=False)
        if done.returncode == 0:
            return str(candidate)
    raise NotInstalledError(f"it needs Python {version} with pip, which this machine does not have")


def _find_complaint(problem: subprocess.CalledProcessError) -> str:
    lines = [line.strip() for line in f"{problem.stdout or ''}\n{problem.stderr or ''}".splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\berror: ", line, re.IGNORECASE)]
    fatal = [line for line in errors if "fatal" in line.lower()]
    words = " ".join((fatal or errors or lines[-1:])[:1])[:300]
    return f"{Path(problem.cmd[0]).name} ended with code {problem.returncode}: {words}"
