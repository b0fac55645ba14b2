"""The helper ``records`` is a correct consumer, too: it reads every nasty topic as described."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import kafkacompat.testing
from kafkacompat.testing.nasty import NastyTopic


@pytest.fixture(scope="module")
def kafka() -> Iterator[kafkacompat.testing.RunningBroker]:
    with kafkacompat.testing.broker() as running:
        yield running


def check_records(kafka: kafkacompat.testing.RunningBroker, topic: NastyTopic) -> None:
    for committed, level in ((False, "read_uncommitted"), (True, "read_committed")):
        read = kafka.records(topic.name, isolation_level=level)
        assert [(record.partition, record.offset, record.value) for record in read] == [
            (record.partition, record.offset, record.value) for record in topic.expected(committed=committed)
        ]


@pytest.mark.parametrize(
    "name",
    [
        "transaction_gaps",
        "aborted_tail",
        "compacted_holes",
        "empty_batch",
        "out_of_order_timestamps",
        "mixed_timestamp_types",
        "mixed_formats",
        "largest_record",
    ],
)
def test_records_are_those_of_the_description(kafka: kafkacompat.testing.RunningBroker, name: str) -> None:
    check_records(kafka, getattr(kafka.nasty, name)(name))


def test_records_begin_at_a_log_start_that_has_moved(kafka: kafkacompat.testing.RunningBroker) -> None:
    jumping = kafka.nasty.retention_jump("jump", records=400)
    check_records(kafka, jumping.before)
    check_records(kafka, jumping.jump())
    check_records(kafka, jumping.jump(350))  # inside a batch


def test_records_are_those_after_a_truncation(kafka: kafkacompat.testing.RunningBroker) -> None:
    check_records(kafka, kafka.nasty.unclean_truncation("truncation").truncate())
