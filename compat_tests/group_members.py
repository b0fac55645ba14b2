"""Members of groups, of librdkafka and of Java, that are driven in one way."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Protocol

from confluent_kafka import Consumer, KafkaException

from compat_tests.brokers import Broker
from compat_tests.java_tools import compile_java, java_command

PROGRAM = Path(__file__).resolve().parent / "java" / "GroupMember.java"
POLL_MS = 50


class Member(Protocol):
    """A consumer in a group; its partitions are (topic, number)."""

    def subscribe(self, *topics: str) -> None: ...

    def match(self, pattern: str) -> None:
        """Subscribe to a regular expression, which the broker looks topics up for."""

    def poll(self, timeout_ms: int = POLL_MS) -> list[str]:
        """The values that came."""

    def assignment(self) -> set[tuple[str, int]]: ...

    def commit(self) -> None: ...

    def close(self) -> None: ...


def settings_of(broker: Broker, group: str, **more: str) -> dict[str, str]:
    """The methods that both clients have under the same names."""
    return {
        "bootstrap.servers": broker.bootstrap,
        "group.id": group,
        "group.protocol": "consumer",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": "false",
        **more,
    }


class ConfluentMember:
    """A member of confluent-kafka."""

    def __init__(self, broker: Broker, group: str, **options: str) -> None:
        quick = {"fetch.wait.max.ms": "100", "topic.metadata.refresh.interval.ms": "1000", "log_level": "0"}
        self._consumer = Consumer(settings_of(broker, group, **(quick | options)))

    def subscribe(self, *topics: str) -> None:
        self._consumer.subscribe(list(topics))

    def match(self, pattern: str) -> None:
        self._consumer.subscribe([f"^{pattern}"])

    def poll(self, timeout_ms: int = POLL_MS) -> list[str]:
        messages = self._consumer.consume(500, timeout_ms / 1000)
        return [(message.value() or b"").decode() for message in messages if not message.error()]

    def assignment(self) -> set[tuple[str, int]]:
        return {(part.topic, part.partition) for part in self._consumer.assignment()}

    def commit(self) -> None:
        try:
            self._consumer.commit(asynchronous=False)
        except KafkaException as problem:
            if problem.args[0].name() != "_NO_OFFSET":
                raise

    def close(self) -> None:
        self._consumer.close()


class JavaMember:
    """A member of the Java client of 4.3.1, in a process of its own."""

    def __init__(self, broker: Broker, group: str, **options: str) -> None:
        quick = {"fetch.max.wait.ms": "100", "metadata.max.age.ms": "1000"}
        settings = settings_of(broker, group, **(quick | options))
        command = java_command(
            "GroupMember",
            [f"{name}={value}" for name, value in settings.items()],
            extra_class_path=[compile_java(PROGRAM)],
            heap="128m",
        )
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def _tell(self, command: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer.endswith("\n"), "the consumer has ended"
        assert not answer.startswith("!"), answer
        return answer.rstrip("\n")

    def subscribe(self, *topics: str) -> None:
        self._tell(f"subscribe {','.join(topics)}")

    def match(self, pattern: str) -> None:
        self._tell(f"match {pattern}")

    def poll(self, timeout_ms: int = POLL_MS) -> list[str]:
        return self._tell(f"poll {timeout_ms}").split()

    def assignment(self) -> set[tuple[str, int]]:
        partitions = (name.rpartition("-") for name in self._tell("assignment").split())
        return {(topic, int(number)) for topic, _, number in partitions}

    def commit(self) -> None:
        self._tell("commit")

    def close(self) -> None:
        self._tell("close")
        self.kill()

    def kill(self) -> None:
        """End the process, if it has not ended yet."""
        self._process.kill()
        self._process.communicate()


MEMBERS: dict[str, type[ConfluentMember] | type[JavaMember]] = {"librdkafka": ConfluentMember, "java": JavaMember}
