"""Kafka's DumpLogSegments reads the segments of nasty topics without a complaint, and shows what ours shows."""

from __future__ import annotations

from pathlib import Path

import pytest

import kafkacompat.testing
from compat_tests.dumps import kafkas_batches, kafkas_dump, kafkas_records, list_complaints, our_fields, our_rows

pytestmark = pytest.mark.tools


def make_topics(kafka: kafkacompat.testing.RunningBroker) -> list[str]:
    """Make the topics; return what Kafka says of their holes: the offsets before and after each, by segment."""
    nasty = kafka.nasty
    holes = [*nasty.empty_batch("empty").missing, *nasty.compacted_holes("holes").missing]
    nasty.transaction_gaps("gaps")
    nasty.aborted_tail("tail", records=200)
    nasty.retention_jump("retention", records=400).jump()
    nasty.out_of_order_timestamps("timestamps")
    nasty.mixed_timestamp_types("types")
    nasty.mixed_formats("formats")
    nasty.largest_record("largest", batch_bytes=2000)
    nasty.unclean_truncation("truncation").truncate()
    compacted = [gap for gap in holes if gap.first and "marker" not in gap.reason]
    return [f"{gap.first - 1} is followed by {gap.last + 1}" for gap in compacted]


def test_kafka_reads_the_segments_of_nasty_topics(tmp_path: Path) -> None:
    with kafkacompat.testing.broker(tmp_path) as kafka:
        holes = make_topics(kafka)
    segments = sorted(tmp_path.glob("*-0/*.log"))
    topics = {path.parent.name for path in segments} - {"__transaction_state-0", "__consumer_offsets-0"}
    assert len(topics) == 10
    output, errors = kafkas_dump(segments, "--deep-iteration")
    ours = [row for path in segments for row in our_rows(path, "--deep-iteration")]
    assert sorted(line.strip() for line in list_complaints(errors)) == sorted(holes)
    assert our_fields(ours, "batch") == kafkas_batches(output)
    assert len(our_fields(ours, "record", "marker")) == len(kafkas_records(output))
