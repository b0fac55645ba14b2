"""The same raw requests to this broker and to Apache Kafka: every field of every answer is the same.

Kafka is 4.3.1, and 3.9.1 with ZooKeeper for the versions that 4.0 dropped.

ALLOWED lists the permitted differences with their reasons; any other difference fails. Where Kafka
gives an error no words, ours may have some.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from compat_tests.brokers import Broker, KafkaBroker, KafkacompatBroker, OldKafkaBroker
from compat_tests.same_answers import (
    after_a_kill,
    classic_groups,
    cluster,
    configs,
    consumer_groups,
    group_administration,
    groups,
    log_directories,
    message_sets,
    migrating_groups,
    node,
    odd_questions,
    old_versions,
    quotas,
    records,
    security,
    static_members,
    topics,
    transaction_states,
    transactional_offsets,
    transactional_records,
    transactions,
)
from compat_tests.same_answers.transcript import Difference, Transcript, find_differences

Script = Callable[[Transcript, str], None]
SCRIPTS: dict[str, Script] = {
    script.__name__: script
    for kind in (
        topics,
        configs,
        node,
        records,
        groups,
        group_administration,
        classic_groups,
        static_members,
        consumer_groups,
        migrating_groups,
        cluster,
        log_directories,
        odd_questions,
        quotas,
        security,
        transactions,
        transaction_states,
        transactional_offsets,
        transactional_records,
    )
    for script in kind.SCRIPTS
}

# Kafka shares the partitions of such groups out in another thread: whether an answer knows of it already is chance there.
LEFT_TO_CHANCE = (*consumer_groups.SCRIPTS, *migrating_groups.SCRIPTS)
ATTEMPTS = 3

LONG_SCRIPTS = {
    "alter_broker_configs",
    "alter_configs",
    "late_members",
    "silent_members",
    "static_members_stay_away",
    "throttled_consumers",
    "throttled_mutations",
    "too_many_quotas",
}
"""Those that take longest: they wait for sessions to expire and throttles to end, or make hundreds of changes."""

OLD_SCRIPTS: dict[str, Script] = {
    script.__name__: script
    for script in (*old_versions.SCRIPTS, *configs.OLD_SCRIPTS, *security.OLD_SCRIPTS, *message_sets.SCRIPTS)
}

PRODUCE = 0

MIN_ISR = "KRaft stores min.insync.replicas as a cluster-wide default when eligible leader replicas are on"
UNEXPECTED = "Kafka did not expect it and says UNKNOWN_SERVER_ERROR; ours says what is wrong"

# Where (script: label, version and field) an answer may differ, and why.
ALLOWED = {
    r"^api_versions: .*\.(api_keys|supported_features|finalized_features|finalized_features_epoch)": (
        "fewer APIs are served so far; test_served_versions_are_kafkas compares those that are"
    ),
    r"^(create_topics|cordoned_directories): .*\.configs\[21\]\.config_source": MIN_ISR,
    r"^describe_configs: (all|none) of a topic .*\.configs\[21\]\.(config_source|synonyms)": MIN_ISR,
    r"^describe_configs_at_first: .*\.is_default": "Kafka 3.9 never fills it; the versions that clients had it for did",
    r"^alter_broker_configs: .*\.documentation": "ours says something of these, too",
    r"^scram_credentials: no password .*\.error_code": UNEXPECTED,
    r"^(first_)?acls: (unknown elements|create unknown) ": "Kafka closes the connection; ours answers as without them",
    r"^alter_(configs|loggers): unknown operation .*\.error_code": UNEXPECTED,
    r"^produce_bad_batches: (garbage records|unknown codec|no gzip) .*\.error_code": UNEXPECTED,
    r"^produce_bad_batches: (empty|truncated|two batches|magic 1) .*\.log_start_offset": (
        "Kafka judges these before it looks at the partition; ours says where its log begins too"
    ),
    r"^produce_message_sets: (codec 5|no gzip|time before 1970) .*\.error_code": UNEXPECTED,
    r"^produce_message_sets: cut ": "Kafka acknowledges what was cut off and drops it; ours refuses it",
    r"^produce_message_sets: append-time: .*\.log_append_time_ms": "two answers may fall into one millisecond",
    r"^fetch_message_sets: .*\.records": "how much is sent differs; what the messages are is compared",
    r"^fetch_message_sets: one byte v[012]: first message": "Kafka sends nothing, so a client never gets on",
    r"^segment_starts: less than none .*\.error_code": UNEXPECTED,
    r"^segment_starts: twice v0": "Kafka lists all segments as often as asked; ours refuses, as in later versions",
    r"^(descriptions: |producers: |transactions: describe )twice[ ,]": "Kafka answers as often as it is asked; ours answers once",
    r"^odd_descriptions: no name .*\.(error_code|topic_authorized_operations)": UNEXPECTED,
    r"^quorum: the quorum .*\.(leader_epoch|log_end_offset|high_watermark|last_\w+_timestamp|listeners)$": (
        "ours is no quorum: it counts changes of its metadata, holds no elections, and its controller has no listener"
    ),
    r"^offsets_of_members: fetch without a member .*\.error_code": UNEXPECTED,
    r"^repetition_of_an_aborted_batch: again ": (
        "Kafka takes what has the sequence numbers of an aborted batch for that batch, and loses it"
    ),
    r"^markers_for_offsets: \w+ older\..*\.error_code": UNEXPECTED,
    r"^markers: (nobody|no epoch) .*\.error_code": UNEXPECTED,
}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, Broker]]:
    folder = tmp_path_factory.mktemp("both")
    kafka, ours = (
        kind(folder / kind.kind, make_properties(folder / kind.kind)) for kind in (KafkaBroker, KafkacompatBroker)
    )
    with kafka, ours:
        yield kafka, ours


def make_properties(folder: Path) -> dict[str, str]:
    """Give a broker somewhere to move partitions to, and its groups bounds that they soon meet.

    Kafka's controller writes a change at once, not 25 ms later: one script alone makes 380 changes, each after the last.
    """
    return {
        "log.dirs": f"{folder / 'first'},{folder / 'second'}",
        "controller.quorum.append.linger.ms": "0",
        "group.min.session.timeout.ms": "250",
        "group.max.size": "4",
    }


@pytest.fixture(scope="module")
def both_old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, Broker]]:
    folder = tmp_path_factory.mktemp("both-old")
    with OldKafkaBroker(folder / "kafka") as kafka, KafkacompatBroker(folder / "ours") as ours:
        yield kafka, ours


def list_scripts() -> list[Any]:
    """Return the scripts, marked if only `make compare` runs them."""
    return [
        pytest.param(script, marks=pytest.mark.compare if name in LONG_SCRIPTS else ())
        for name, script in SCRIPTS.items()
    ]


def record_answers(script: Script, port: int, attempt: int = 0) -> dict[str, Any]:
    with closing(Transcript(port)) as transcript:
        script(transcript, script.__name__.replace("_", "-") + "-again" * attempt)
        return transcript.answers


def is_allowed(difference: Difference) -> bool:
    says_more = not difference.kafka and difference.where.endswith("error_message")
    return says_more or any(re.search(pattern, difference.where) for pattern in ALLOWED)


@pytest.mark.parametrize("script", list_scripts(), ids=SCRIPTS.keys())
def test_answers_are_the_same(both: tuple[Broker, Broker], script: Script) -> None:
    assert_same(script, both)


@pytest.mark.parametrize("script", OLD_SCRIPTS.values(), ids=OLD_SCRIPTS.keys())
def test_answers_in_dropped_versions_are_the_same(both_old: tuple[Broker, Broker], script: Script) -> None:
    assert_same(script, both_old)


def assert_same(script: Script, both: tuple[Broker, Broker]) -> None:
    for attempt in range(ATTEMPTS if script in LEFT_TO_CHANCE else 1):
        differences = find_unexpected(script, both, attempt)
        if not differences:
            return
    pytest.fail("\n".join(map(str, differences)))


def find_unexpected(script: Script, both: tuple[Broker, Broker], attempt: int) -> list[Difference]:
    kafka, ours = (record_answers(script, broker.port, attempt) for broker in both)
    return compare_answers(script.__name__, kafka, ours)


def compare_answers(script: str, kafka: dict[str, Any], ours: dict[str, Any]) -> list[Difference]:
    assert kafka.keys() == ours.keys()
    return [
        difference
        for label in kafka
        for difference in find_differences(f"{script}: {label}", kafka[label], ours[label])
        if not is_allowed(difference)
    ]


@pytest.mark.parametrize("version", range(5))
def test_served_versions_are_kafkas(both: tuple[Broker, Broker], version: int) -> None:
    kafka, ours = (
        {
            entry["api_key"]: entry
            for entry in record_answers(topics.api_versions, broker.port)[f"all v{version}"]["api_keys"]
        }
        for broker in both
    )
    newest = {key: kafka[key]["max_version"] for key in ours}
    assert {key: entry["max_version"] for key, entry in ours.items()} == newest
    # Kafka 4 dropped old versions that ours serves; of Produce it names 0, and closes the connection upon 0 to 2.
    later = {key for key in ours if ours[key]["min_version"] > kafka[key]["min_version"]}
    assert later <= {PRODUCE}


@pytest.mark.compare
def test_answers_after_a_kill_are_the_same(both: tuple[Broker, Broker]) -> None:
    """The last test: the brokers are killed, and have other properties then."""
    differences = compare_answers("outlive_a_kill", *map(answers_after_a_kill, both))
    assert not differences, "\n".join(map(str, differences))


def answers_after_a_kill(broker: Broker) -> dict[str, Any]:
    with closing(Transcript(broker.port)) as transcript:
        story = after_a_kill.outlive_a_kill(transcript, "outlive")
        next(story)
        broker.kill()
        broker.change(after_a_kill.PROPERTIES_AFTER)
        broker.start()
        next(story, None)
        return transcript.answers
