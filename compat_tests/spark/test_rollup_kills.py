"""`kafkacompat spark rollup` killed anywhere, several times, and in the end as if it had run through."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from compat_tests.brokers import Broker
from compat_tests.confluent import create_topic, produce
from compat_tests.spark.copies import Run, held, kill_in_the_middle, kills
from compat_tests.spark.rollups import MEASURES, MINUTE_MS, Event, Model, event, in_table, in_topic, random_events

pytestmark = pytest.mark.spark

EVENTS, A_BATCH = 300, 30


@dataclass
class Job:
    """The command over a topic of events, and how far it has come."""

    broker: Broker
    topic: str
    folder: Path

    @property
    def results(self) -> str:
        return f"{self.topic}-results"

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
            "--watermark": "10 minutes",
            "--dimensions": "place.country",
            "--measures": MEASURES,
        }
        return ["rollup", *(word for pair in words.items() for word in pair), *more]

    def accounts(self) -> int:
        folder = self.folder / "checkpoint" / "rollup"
        numbers = [int(path.name) for path in folder.glob("*") if path.name.isdecimal()]
        return max(numbers, default=-1) + 1

    def told(self) -> int:
        return held(self.broker, self.results)

    def account(self) -> dict[str, int]:
        account: dict[str, int] = json.loads((self.folder / "checkpoint/rollup" / str(self.accounts() - 1)).read_text())
        return account


def events_in_time(dice: random.Random) -> list[Event]:
    """Return events of an hour, each at most two minutes out of its place: none is late."""
    return [
        {**one, "time": event(number / EVENTS * 60 + dice.uniform(0, 2))["time"]}
        for number, one in enumerate(random_events(dice, EVENTS, 60))
    ]


@pytest.mark.parametrize(("mode", "format"), [("append", "parquet"), ("update", "delta")])
def test_killed_and_resumed(broker: Broker, name: str, tmp_path: Path, mode: str, format: str) -> None:
    """A kill falls when an account was written, or when results begin to be in the topic; both at any batch."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    random.seed(seed)
    job = Job(broker, name, tmp_path)
    create_topic(broker, name, 2)
    events = events_in_time(dice)
    produce(broker, name, [json.dumps(one) for one in events])
    model = Model(delay_ms=10 * MINUTE_MS)
    model.batch(events)
    # Delta reads its own log by 50 tasks otherwise.
    few_tasks = ("--conf", "spark.databricks.delta.snapshotPartitions=2")
    words = job.words("--mode", mode, "--format", format, *few_tasks)
    results = model.results(closed=mode == "append")
    ends: list[tuple[Callable[[], int], int]] = [(job.accounts, EVENTS // A_BATCH), (job.told, len(results))]
    for number in range(kills()):
        done, all_of_it = ends[number % 2]
        # The first kills leave something for the later ones.
        most = all_of_it * (number + 1) // (kills() + 2)
        kill_in_the_middle(tmp_path / f"run{number}", words, done, most, all_of_it)
    last = Run(tmp_path / "last", *words, "--json")
    assert last.wait() == 0, last.stderr[-3000:]
    told, buried = in_topic(broker, job.results)
    assert told == in_table(tmp_path / "table") == results
    assert not buried
    account = job.account()
    assert (account["rows"], account["late_rows"], account["dead_rows"]) == (EVENTS, 0, 0)
