"""`kafkacompat spark rollup` killed anywhere, several times, has the results of an uninterrupted run."""

from __future__ import annotations

import json
import math
import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from compat_tests.brokers import Broker
from compat_tests.confluent import create_topic, produce
from compat_tests.spark.copies import Run, count_offsets, kill_count, kill_in_the_middle
from compat_tests.spark.rollups import (
    MEASURES,
    MINUTE_MS,
    Model,
    make_event,
    random_events,
    read_last_values,
    read_messages,
    read_table,
)

pytestmark = pytest.mark.spark

A_BATCH = 30
# The number of results of a batch or two.
A_FEW = 10
RETENTION_MS = 20 * MINUTE_MS


@dataclass
class Job:
    """The command over a topic of events, and its progress."""

    broker: Broker
    topic: str
    folder: Path

    @property
    def results(self) -> str:
        return f"{self.topic}-results"

    @property
    def dead(self) -> str:
        return f"{self.topic}-dead"

    def words(self, *more: str) -> list[str]:
        words = {
            "--bootstrap-server": self.broker.bootstrap,
            "--subscribe": self.topic,
            "--maxOffsetsPerTrigger": str(A_BATCH),
            "--checkpointLocation": str(self.folder / "checkpoint"),
            "--topic": self.results,
            "--path": str(self.folder / "table"),
            "--time-field": "time",
            "--window": "1 minute",
            "--watermark": "5 minutes",
            "--retention": "20 minutes",
            "--dead-topic": self.dead,
            "--dimensions": "place.country",
            "--measures": MEASURES,
        }
        return ["rollup", *(word for pair in words.items() for word in pair), *more]

    def accounts(self) -> int:
        folder = self.folder / "checkpoint" / "rollup"
        numbers = [int(path.name) for path in folder.glob("*") if path.name.isdecimal()]
        return max(numbers, default=-1) + 1

    def count_results(self) -> int:
        return count_offsets(self.broker, self.results)

    def account(self) -> dict[str, int]:
        account: dict[str, int] = json.loads((self.folder / "checkpoint/rollup" / str(self.accounts() - 1)).read_text())
        return account


def values_of(dice: random.Random, count: int) -> list[str]:
    """Return events of an hour, some of them late, and some values that are no events."""
    events = random_events(dice, count, 60)
    for number, event in enumerate(events):
        late = 15 if number % 9 == 8 else 0
        event["time"] = make_event(number / count * 60 + dice.uniform(0, 2) - late)["time"]
    return [f"broken {number}" if number % 11 == 5 else json.dumps(event) for number, event in enumerate(events)]


def model_of(values: list[str]) -> Model:
    """Return the results of the batches: an event is late by the watermark of the batch before its own."""
    model, late_until_ms = Model(), 0
    for begin in range(0, len(values), A_BATCH):
        watermark_ms = model.watermark_ms
        batch = [json.loads(value) for value in values[begin : begin + A_BATCH] if value.startswith("{")]
        model.batch(batch, late_until_ms)
        late_until_ms = watermark_ms
    return model


@pytest.mark.parametrize(("mode", "format"), [("append", "parquet"), ("update", "delta")])
def test_killed_and_resumed(broker: Broker, name: str, tmp_path: Path, mode: str, format: str) -> None:
    """A kill comes when an account was written, or when results begin to appear in the topic; both at any batch."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    random.seed(seed)
    job = Job(broker, name, tmp_path)
    create_topic(broker, name, 1)
    # Two batches for each kill, so that each can come in the middle.
    values = values_of(dice, A_BATCH * (2 * kill_count() + 4))
    produce(broker, name, values)
    model, batches = model_of(values), len(values) // A_BATCH
    assert model.late > kill_count()
    horizon_ms = model.watermark_ms - RETENTION_MS
    all_results, results = (model.results(closed=mode == "append", from_ms=from_ms) for from_ms in (0, horizon_ms))
    words = job.words("--mode", mode, "--format", format)
    gone = all_results.keys() - results.keys()
    for number in range(kill_count()):
        if number % 2:
            # A killed batch writes its results again, so their number is unknown.
            kill_in_the_middle(
                tmp_path / f"run{number}", words, job.count_results, job.count_results() + A_FEW, math.inf
            )
            assert job.accounts() < batches
        else:
            # The first kills leave work for the later ones.
            most = batches * (number + 1) // (kill_count() + 2)
            kill_in_the_middle(tmp_path / f"run{number}", words, job.accounts, most, batches)
    last = Run(tmp_path / "last", *words, "--json")
    assert last.wait() == 0, last.stderr[-3000:]
    last_values, buried = read_last_values(broker, job.results)
    assert last_values == results
    assert buried == gone
    # Parquet drops whole days, and this is one.
    assert read_table(tmp_path / "table") == (all_results if format == "parquet" else results)
    broken = {offset: value for offset, value in enumerate(values) if not value.startswith("{")}
    assert dead_letters(broker, job.dead) == broken
    account = job.account()
    assert (account["rows"], account["late_rows"], account["dead_rows"]) == (len(values), model.late, len(broken))
    assert (account["tombstones"], account["horizon_ms"]) == (len(gone), horizon_ms)


def dead_letters(broker: Broker, topic: str) -> dict[int, str]:
    """Return the dead letters by the offsets of their origin; a killed batch may have written them twice."""
    letters = read_messages(broker, topic)
    return {int(dict(letter.headers())["kafkacompat-origin-offset"]): letter.value().decode() for letter in letters}
