"""What can be checked without Spark, so that a wrong option is rejected in under a second. Imports no pyspark."""

from __future__ import annotations

import json
import os
import queue
import re
import socket
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from spark_integration.errors import PipelineError
from spark_integration.runtime.settings import is_local, is_secret
from spark_integration.state.manifest import DESCRIPTION
from spark_integration.topics.client_settings import KAFKA
from spark_integration.topics.offsets import parse_offsets

CONNECT_S = 0.7
ADDRESS = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([^\s:,\[\]/]+)):(\d{1,5})")
# The words that each end takes beside JSON (Spark Kafka guide; case does not matter).
WORDS = {"starting": ("earliest", "latest"), "ending": ("latest",)}


def check_addresses(option: str, text: str) -> None:
    """Raise PipelineError unless *text* is HOST:PORT, or several with commas between them."""
    _parse_addresses(option, text)


def _parse_addresses(option: str, text: str) -> list[tuple[str, int]]:
    addresses = []
    for word in text.split(","):
        match = ADDRESS.fullmatch(word.strip())
        if match is None or not 0 < int(match[3]) < 1 << 16:
            raise PipelineError(f"{option} {word.strip()!r} is no address: give HOST:PORT, such as 127.0.0.1:9092")
        addresses.append((match[1] or match[2], int(match[3])))
    return addresses


def check_source_offsets(source: Mapping[str, str]) -> None:
    """Raise PipelineError for an end of the source (startingOffsets, …) that Spark would not take."""
    for end, words in WORDS.items():
        name = f"{end}Offsets"
        if name in source and source[name].lower() not in words:
            _check_offsets(name, source[name], f"{', '.join(words)}, or ", '{"topic":{"0":23}}')
        name = f"{end}OffsetsByTimestamp"
        if name in source:
            _check_offsets(name, source[name], "", '{"topic":{"0":1700000000000}}')


def _check_offsets(name: str, text: str, words: str, example: str) -> None:
    try:
        offsets = parse_offsets(text)
    except PipelineError as problem:
        raise PipelineError(f"--{name} {text!r} is wrong: give {words}JSON such as {example}") from problem
    if not offsets:
        raise PipelineError(f"--{name} {text!r} names no partition: give {words}JSON such as {example}")
    for partition, offset in offsets.items():
        if offset < -2:
            raise PipelineError(
                f"--{name} gives {partition.topic}-{partition.partition} the offset {offset}: "
                "give 0 or more, -1 (latest) or -2 (earliest)"
            )


def check_assignment(text: str) -> None:
    """Raise PipelineError unless *text* names partitions as Spark's option assign does: ``{"topic":[0,1]}``."""
    try:
        assigned = json.loads(text)
    except ValueError:
        assigned = None
    if not isinstance(assigned, dict) or not all(_are_partitions(numbers) for numbers in assigned.values()):
        raise PipelineError(f'--assign {text!r} is wrong: give partitions as {{"topic":[0,1]}}')


def _are_partitions(numbers: Any) -> bool:
    return isinstance(numbers, list) and all(type(number) is int and number >= 0 for number in numbers)


def check_for_secrets(option: str, values: Mapping[str, str], prefix: str, place: str) -> None:
    """Raise PipelineError if one of *values* whose name begins with *prefix* is a secret; *place* is where it belongs."""
    for name in values:
        # Spark does not distinguish the case of its options.
        if name.lower().startswith(prefix) and is_secret(name):
            raise PipelineError(f"{option} {name} shows a secret in the list of processes: put it into {place}")


def check_client_files(cluster: Mapping[str, str]) -> None:
    """Raise PipelineError if a file that the options of a Kafka client name cannot be read."""
    for name in ("ssl.truststore.location", "ssl.keystore.location"):
        path = cluster.get(f"{KAFKA}{name}")
        if path is not None and not os.access(path, os.R_OK):
            raise PipelineError(f"{name}={path} cannot be read: name a file that exists, and check its permissions")


def check_reachable(option: str, text: str) -> None:
    """Raise PipelineError if every address refuses connections or has an unknown name.

    Addresses that give no answer within `CONNECT_S` are left to Kafka's clients, which wait longer.
    """
    addresses = _parse_addresses(option, text)
    answers: queue.Queue[OSError | None] = queue.Queue()
    for address in addresses:
        threading.Thread(target=_try_connecting, args=(address, answers), daemon=True).start()
    deadline = time.monotonic() + CONNECT_S
    failures = []
    for _ in addresses:
        try:
            answer = answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            return
        if answer is None or isinstance(answer, TimeoutError):
            return
        failures.append(answer)
    raise _build_unreachable_error(option, text, failures)


def _try_connecting(address: tuple[str, int], answers: queue.Queue[OSError | None]) -> None:
    try:
        socket.create_connection(address, timeout=CONNECT_S).close()
    except OSError as problem:
        answers.put(problem)
    else:
        answers.put(None)


def _build_unreachable_error(option: str, text: str, failures: Iterable[OSError]) -> PipelineError:
    if all(isinstance(failure, socket.gaierror) for failure in failures):
        return PipelineError(f"the name in {option} {text} cannot be resolved: correct it")
    return PipelineError(f"no broker listens on {text}: start it, or correct {option}")


def local_path(path: str, master: str, conf: Mapping[str, str]) -> Path | None:
    """Return the path on this machine that a Hadoop path means, None if it is elsewhere or that cannot be known here."""
    parts = urlsplit(path)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    configured = os.environ.get("HADOOP_CONF_DIR") or any("fs.defaultFS" in name for name in conf)
    return None if parts.scheme or configured or not is_local(master) else Path(path)


def check_written_folder(option: str, path: Path) -> None:
    """Raise PipelineError unless *path* is a folder that can be written to, or can be made."""
    nearest = next(folder for folder in (path, *path.resolve().parents) if folder.exists())
    if not nearest.is_dir():
        raise PipelineError(f"{option} {path}: {nearest} is a file; give a folder, which need not exist yet")
    _check_writable(option, path, nearest)


def check_written_file(option: str, path: Path) -> None:
    """Raise PipelineError unless the file *path* can be written."""
    folder = path.resolve().parent
    if not folder.is_dir():
        raise PipelineError(f"there is no folder {folder}: make it, or put {option} elsewhere")
    _check_writable(option, path, path if path.exists() else folder)


def _check_writable(option: str, path: Path, nearest: Path) -> None:
    if not os.access(nearest, os.W_OK):
        raise PipelineError(f"{option} {path}: {nearest} cannot be written to; change its permissions or name another")


def check_archive(_option: str, path: Path) -> None:
    """Raise PipelineError unless *path* holds an archive."""
    if not (path / DESCRIPTION).is_file():
        raise PipelineError(f"there is no archive in {path}: give the --path that `kafkacompat spark archive` wrote to")
