"""``python -m compat_tests.conformance``: every message in every version against Kafka 4.3.1, 3.9.1 and kio."""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import cycle, islice
from typing import TypeVar

from rich.console import Console
from rich.progress import track

from compat_tests.conformance.kafka import RELEASES, find_differences, list_cases
from compat_tests.conformance.second_opinion import known_to_kio
from compat_tests.oracle import Oracle
from kafkacompat.wire.schema import Message, Request
from tests.wire.random_messages import Mode, seeded_random

MODES = (Mode.DEFAULT, Mode.NULL, Mode.BOUNDARY, Mode.SMALL, *(Mode.RANDOM,) * 6)
SHOWN = 10
Item = TypeVar("Item")


@dataclass
class Tally:
    """The numbers of judged messages and differences."""

    messages: int = 0
    seen: set[tuple[type[Message], int]] = field(default_factory=set)
    differences: list[str] = field(default_factory=list)

    def sentence(self) -> str:
        pairs = sum(1 for cls, _ in self.seen if issubclass(cls, Request))
        versions = f"{len(self.seen)} versions of messages (of APIs: {pairs} pairs of request and response)"
        return f"{self.messages:,} messages, {versions}, {len(self.differences):,} differences"


def main(arguments: Sequence[str]) -> int:
    """Judge at least ``--messages`` messages by Kafka, then some of each version by kio; return 1 if any differs."""
    parser = argparse.ArgumentParser(prog="conformance", description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000, help="how many at least (100,000)")
    wanted: int = parser.parse_args(arguments).messages
    rng = seeded_random()
    tallies = {"Kafka": by_kafka(wanted, rng)}
    if find_spec("kio"):
        tallies["kio"] = by_kio(rng)
    else:
        print("kio is not installed (it needs Python 3.11), so only Kafka's classes judge")
    for judge, tally in tallies.items():
        print(f"{judge}: {tally.sentence()}")
        for words in tally.differences[:SHOWN]:
            print(f"  {words[:2000]}")
    return int(any(tally.differences for tally in tallies.values()))


def by_kafka(wanted: int, rng: random.Random) -> Tally:
    """Let each release judge its half of the messages, spread over all that it has."""
    tally = Tally()
    for release in RELEASES:
        with Oracle(release) as oracle:
            work = list_cases(oracle)
            modes = list(islice(cycle(MODES), math.ceil(wanted / len(RELEASES) / len(work))))
            for case in show_progress(work, f"Kafka {release.name}"):
                tally.differences += find_differences(oracle, case, modes, rng)
                tally.seen.add((case.cls, case.version))
                tally.messages += len(modes)
    return tally


def by_kio(rng: random.Random) -> Tally:
    """Judge the messages that kio has."""
    tally = Tally()
    for judge in show_progress(list(known_to_kio()), "kio"):
        verdicts = list(judge.differences(MODES * 2, rng))
        if verdicts:
            tally.seen.add((judge.cls, judge.version))
        tally.messages += len(verdicts)
        tally.differences += [words for words in verdicts if words is not None]
    return tally


def show_progress(work: Sequence[Item], title: str) -> Iterable[Item]:
    """Show the progress of the work on a terminal."""
    return track(work, title, console=Console(stderr=True))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
