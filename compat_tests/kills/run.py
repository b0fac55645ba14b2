"""A broker under load that is killed again and again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

from compat_tests.brokers import KafkacompatBroker
from compat_tests.kills.load import Load
from compat_tests.kills.verdict import Verdict
from compat_tests.waiting import pause

PROPERTIES = {
    "log.retention.check.interval.ms": "500",
    "log.flush.offset.checkpoint.interval.ms": "700",
    "log.cleaner.backoff.ms": "500",
    "offsets.topic.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
}
LEVELS = ("kafka", "fsync")
LONGEST_LIFE_S = 2.0


def run(folder: Path, level: str, kills: int, seed: int, killed: Callable[[], None] = lambda: None) -> Verdict:
    """Kill a broker *kills* times at a level of `kafkacompat.acks.after`, and read back its records."""
    random, verdict = Random(seed), Verdict()
    broker = KafkacompatBroker(folder, {**PROPERTIES, "kafkacompat.acks.after": level})
    with broker:
        load = Load(broker.bootstrap)
        load.start()
        try:
            while verdict.kills < kills:
                pause(random.uniform(0.1, LONGEST_LIFE_S))
                known = load.known()
                broker.kill()
                verdict.kills += 1
                if verdict.kills == kills:
                    verdict.verify(broker)
                broker.start()
                verdict.read_on(broker, load, known)
                verdict.check_commits(broker, load, known)
                killed()
        finally:
            load.stop()
        verdict.read_all(broker, load)
        verdict.anomalies += load.problems
        broker.stop()
        verdict.verify(broker)
    return verdict
