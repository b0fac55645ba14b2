"""Our encoder and decoder against the classes Apache Kafka generates for itself: byte for byte, both ways.

Every version of a message is judged by each release that has it, stable or not. A judge reads what random messages
look like as JSON, in our bytes, in our bytes with unknown tagged fields, and cut off.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compat_tests.oracle import KAFKA_3, KAFKA_4, RENAMED, Oracle, kafka_json
from kafkacompat.wire.apis import find_api
from kafkacompat.wire.compiler import encode_message, find_reader
from kafkacompat.wire.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafkacompat.wire.headers import RequestHeader, ResponseHeader
from kafkacompat.wire.metadata_records import RECORD_TYPES
from kafkacompat.wire.primitives import MalformedError
from kafkacompat.wire.schema import Message
from tests.wire.newer_messages import lift_message
from tests.wire.random_messages import Mode, make_message

RELEASES = (KAFKA_4, KAFKA_3)
OTHERS = (
    RequestHeader,
    ResponseHeader,
    ConsumerProtocolSubscription,
    ConsumerProtocolAssignment,
    *RECORD_TYPES.values(),
)
"""Messages that belong to no API."""
CHANGED = {"ReadShareGroupStateSummaryResponse": (0,)}
"""Versions that were not stable in 3.9.1 and look different since they are."""


@dataclass(frozen=True)
class Case:
    """One version of one message, under the name that the judging release has for it."""

    cls: type[Message]
    version: int
    name: str

    def __str__(self) -> str:
        return f"{self.cls.__name__} {self.version}"


def list_cases(oracle: Oracle) -> list[Case]:
    """Return the cases that the oracle's release can judge."""
    changed = CHANGED if oracle.release is KAFKA_3 else {}
    return [case for case in _all_cases(oracle) if case.version not in changed.get(case.name, ())]


def _all_cases(oracle: Oracle) -> Iterator[Case]:
    for api in oracle.ask("apis")["apis"]:
        for version in range(api["first"], api["last"] + 1):
            for cls, kind in zip(find_api(api["key"]), ("Request", "Response"), strict=True):
                yield Case(cls, version, api["name"] + kind)
    for other in OTHERS:
        span = oracle.ask("versions", name=other.__name__)
        for version in range(span["first"], span["last"] + 1):
            yield Case(other, version, other.__name__)


def find_differences(oracle: Oracle, case: Case, modes: Sequence[Mode], rng: random.Random) -> list[str]:
    """Judge one message of each mode; return a sentence for everything in which Kafka and we differ."""
    samples = [Sample.make(case, mode, rng) for mode in modes]
    names = RENAMED.get(case.name) if oracle.release is KAFKA_3 else None
    questions = [sample.question(case.version, names) for sample in samples]
    answers = oracle.ask("messages", name=case.name, version=case.version, messages=questions)["messages"]
    differences = [sample.differences(case, answer) for sample, answer in zip(samples, answers, strict=True)]
    return [f"{case} by Kafka {oracle.release.name}: {sentence}" for sentences in differences for sentence in sentences]


@dataclass(frozen=True)
class Sample:
    """A message, its bytes, the bytes with unknown tagged fields (flexible versions), and where to cut the bytes."""

    message: Message
    data: bytes
    tagged: bytes | None
    cuts: list[int]

    @classmethod
    def make(cls, case: Case, mode: Mode, rng: random.Random) -> Sample:
        message = make_message(case.cls, case.version, rng, mode)
        data = encode_message(message, case.version)
        tagged = encode_message(lift_message(message, rng), case.version) if case.version in case.cls.FLEXIBLE else None
        return cls(message, data, tagged, [len(data) - 1, rng.randrange(len(data))] if data else [])

    def question(self, version: int, names: Mapping[str, str] | None) -> dict[str, object]:
        """Return the message for the oracle, whose release may have other names for some fields."""
        tagged = None if self.tagged is None else self.tagged.hex()
        json = kafka_json(self.message, version, names)
        return {"json": json, "hex": self.data.hex(), "tagged": tagged, "cuts": self.cuts}

    def differences(self, case: Case, answer: dict[str, Any]) -> Iterator[str]:
        """Compare the oracle's answer and our result with the expected message."""
        expected = {
            "written": self.data.hex(),
            "written_again": self.data.hex(),
            "left": 0,
            "tagged_again": None if self.tagged is None else self.tagged.hex(),
            "accepted_cuts": [],
        }
        if "error" in answer:
            yield f"{answer['error']} for {self.message}"
        else:
            wrong = (name for name, value in expected.items() if answer[name] != value)
            yield from (f"{name} is {answer[name]}, expected {expected[name]} for {self.message}" for name in wrong)
        yield from self._read_differently(case)

    def _read_differently(self, case: Case) -> Iterator[str]:
        read = find_reader(case.cls, case.version)
        for data in (self.data, self.tagged):
            if data is not None and read(data, 0) != (self.message, len(data)):
                yield f"we read {data.hex()} as {read(data, 0)}, expected {self.message}"
        for cut in self.cuts:
            try:
                yield f"we read {self.data[:cut].hex()} as {read(self.data[:cut], 0)}, expected a refusal"
            except MalformedError:
                continue
