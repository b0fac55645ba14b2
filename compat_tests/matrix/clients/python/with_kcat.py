"""Drives kcat, a command line program, whose path is in the environment as KCAT."""

import json
import os
import re
import subprocess
import threading
from typing import Any, Sequence

from compat_tests.matrix.clients.python.common import (
    PATIENCE_SECONDS,
    Commands,
    header,
    key,
    options,
    serve,
    tell_assigned,
    tell_record,
    value,
)

RECORDS_A_HEADER = 100
ASSIGNED = re.compile(r"rebalanced.*: assigned: (.*)")


class Client:
    def __init__(self, named: "dict[str, str]") -> None:
        self.command = [os.environ["KCAT"], "-b", named["bootstrap"], "-X", "client.id=matrix"]
        self.environment = dict(os.environ, LD_LIBRARY_PATH=os.environ["KCAT_LIBRARIES"])

    def create(self, topic: str, partitions: int) -> None:
        """Ask for the topic until it is there."""
        for _ in range(20):
            known = json.loads(self.run(["-L", "-J", "-t", topic, "-X", "allow.auto.create.topics=true"]))
            if any(len(topic_metadata["partitions"]) == partitions for topic_metadata in known["topics"]):
                return
        raise RuntimeError("the topic was not made")

    def run(self, arguments: Sequence[str], stdin: bytes = b"") -> bytes:
        done = subprocess.run(
            [*self.command, *arguments],
            input=stdin,
            env=self.environment,
            timeout=PATIENCE_SECONDS,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        if done.returncode != 0:
            raise RuntimeError(done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}")
        return done.stdout

    def produce(self, mode: str, topic: str, codec: str, numbers: range, timestamp: int) -> None:
        arguments = ["-P", "-t", topic, "-K", "=", "-z", codec, "-X", "acks=all", "-X", "linger.ms=5"]
        arguments += ["-X", "max.in.flight.requests.per.connection=1", "-X", "message.timeout.ms=20000"]
        if mode == "idempotent":
            arguments += ["-X", "enable.idempotence=true"]
        for first in range(numbers.start, numbers.stop, RECORDS_A_HEADER):
            some = range(first, min(first + RECORDS_A_HEADER, numbers.stop))
            lines = b"".join(b"%s=%s\n" % (key(number), value(number)) for number in some)
            self.run([*arguments, "-H", f"n={header(first).decode()}"], lines)

    def consume(self, committed: bool, topic: str, partitions: int, count: int) -> None:
        level = "read_committed" if committed else "read_uncommitted"
        arguments = ["-C", "-t", topic, "-o", "beginning", "-c", str(count), "-J", "-q", "-u"]
        reader = subprocess.Popen(
            [*self.command, *arguments, "-X", f"isolation.level={level}", "-X", "auto.offset.reset=earliest"],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        impatience = threading.Timer(PATIENCE_SECONDS, reader.kill)
        impatience.start()
        tell_lines(reader.stdout)
        impatience.cancel()
        errors = reader.communicate()[1].decode(errors="replace").strip()
        if reader.returncode != 0:
            raise RuntimeError(errors or f"exit code {reader.returncode}")

    def join(self, topic: str, group: str, commands: Commands) -> None:
        settings = ["auto.offset.reset=earliest", "session.timeout.ms=10000", "heartbeat.interval.ms=500"]
        arguments = [part for setting in settings for part in ("-X", setting)] + ["-J", "-u", "-G", group, topic]
        member = subprocess.Popen(
            [*self.command, *arguments], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        listeners: "list[threading.Thread]" = [
            threading.Thread(target=tell_lines, args=(member.stdout,)),
            threading.Thread(target=tell_rebalances, args=(member.stderr,)),
        ]
        for listener in listeners:
            listener.start()
        commands.next()
        member.terminate()
        member.wait(PATIENCE_SECONDS)
        for listener in listeners:
            listener.join()


def tell_lines(stdout: Any) -> None:
    for line in stdout:
        tell_line(json.loads(line))


def tell_rebalances(stderr: Any) -> None:
    for line in stderr:
        match = ASSIGNED.search(line.decode())
        if match:
            tell_assigned(int(number) for number in re.findall(r"\[(\d+)\]", match.group(1)))


def tell_line(message: "dict[str, Any]") -> None:
    flat = message.get("headers") or []
    headers = [(name, held.encode()) for name, held in zip(flat[::2], flat[1::2])]
    key, value = (None if message[name] is None else message[name].encode() for name in ("key", "payload"))
    tell_record(message["partition"], message["offset"], key, value, timestamp=message["ts"], headers=headers)


if __name__ == "__main__":
    serve(Client(options()))
