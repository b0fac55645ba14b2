"""What the drivers of Python clients share; runs on Python 3.6 and later.

A client is an object with ``create``, ``produce``, ``consume`` and ``join``; see `compat_tests.matrix.driver` for what
they have to do, and `compat_tests.matrix.records` for the texts of record n.
"""

import json
import queue
import sys
import threading
import time
import traceback
from typing import Any, Callable, Iterable, Sequence

PATIENCE_SECONDS = 25.0
CHECK_EVERY_SECONDS = 0.05
FILL = "x" * 100


def key(number: int) -> bytes:
    return b"key-%d" % (number % 50)


def value(number: int) -> bytes:
    return ("value-%d-%s" % (number, FILL)).encode()


def header(number: int) -> bytes:
    return b"header-%d" % (number // 100)


def text(data: "bytes | None") -> "str | None":
    return None if data is None else bytes(data).decode(errors="replace")


def tell(**event: Any) -> None:
    """Write one line of JSON."""
    print(json.dumps(event), flush=True)


def tell_record(
    partition: int,
    offset: int,
    key: "bytes | None",
    value: "bytes | None",
    timestamp: "int | None" = None,
    headers: Iterable[Any] = (),
) -> None:
    """Report a record; *headers* are pairs of name and value."""
    held = [text(pair[1]) for pair in headers or () if pair[0] == "n"]
    tell(
        partition=partition,
        offset=offset,
        key=text(key),
        value=text(value),
        timestamp=timestamp,
        header=held[-1] if held else None,
    )


def tell_assigned(partitions: Iterable[int]) -> None:
    tell(assigned=sorted(partitions))


class Commands:
    """The lines of standard input, read by a thread so that a member can look for ``leave`` while it polls."""

    def __init__(self) -> None:
        self._lines: "queue.Queue[str]" = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in sys.stdin:
            self._lines.put(line)
        self._lines.put("")

    def next(self) -> "list[str]":
        """Wait for a command and return its words; none at the end of the input."""
        return self._lines.get().split()

    def leave(self) -> bool:
        """Return whether the member must leave."""
        try:
            self._lines.get_nowait()
        except queue.Empty:
            return False
        return True


def read(count: int, poll: Callable[[], int]) -> None:
    """Call *poll*, which reports records and returns their number, until it has reported *count* records."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    seen = 0
    while seen < count:
        seen += poll()
        if time.monotonic() > deadline:
            raise RuntimeError("only %d of %d records came" % (seen, count))


def serve(client: Any) -> None:
    """Obey commands until there are no more."""
    commands = Commands()
    words = commands.next()
    while words:
        try:
            obey(client, commands, words[0], words[1:])
            tell(done=True)
        except Exception as problem:
            traceback.print_exc()
            tell(error="%s: %s" % (type(problem).__name__, problem))
        words = commands.next()


def obey(client: Any, commands: Commands, verb: str, words: Sequence[str]) -> None:
    if verb == "create":
        client.create(words[0], int(words[1]))
    elif verb == "produce":
        mode, topic, codec = words[:3]
        first, count, timestamp = map(int, words[3:])
        client.produce(mode, topic, codec, range(first, first + count), timestamp)
    elif verb == "consume":
        client.consume(words[0] == "committed", words[1], int(words[2]), int(words[3]))
    else:
        client.join(words[0], words[1], commands)


def options() -> "dict[str, str]":
    """Return the ``name=value`` arguments of the command line; the bootstrap address is called ``bootstrap``."""
    named = dict(argument.split("=", 1) for argument in sys.argv[1:-1])
    named["bootstrap"] = sys.argv[-1]
    return named
