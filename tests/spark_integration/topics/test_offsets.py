"""Offsets in Spark's JSON, and their differences."""

from __future__ import annotations

import json

import pytest

from spark_integration.errors import PipelineError
from spark_integration.topics.offsets import TopicPartition, count_offsets_between, format_offsets, parse_offsets

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_formatted_offsets_are_parsed_again() -> None:
    offsets = {B0: 2**53 + 1, A1: -2, A0: 0}
    text = format_offsets(offsets)
    assert json.loads(text) == {"a": {"0": 0, "1": -2}, "b": {"0": 2**53 + 1}}
    assert parse_offsets(text) == offsets
    assert parse_offsets(format_offsets({})) == {}


@pytest.mark.parametrize(
    "text", ["", "earliest", "[]", '{"a": 1}', '{"a": {"x": 1}}', '{"a": {"0": null}}', '{"a": [0]}']
)
def test_bad_offsets_are_refused(text: str) -> None:
    with pytest.raises(PipelineError, match="are no offsets: give them as"):
        parse_offsets(text)


def test_distance() -> None:
    assert count_offsets_between({A0: 3, A1: 5}, {A0: 10, A1: 5}) == 7
    assert count_offsets_between({A0: 3}, {A0: 3, B0: 4}) == 4
    # A partition whose topic was recreated went back, and does not offset another one.
    assert count_offsets_between({A0: 9, A1: 0}, {A0: 1, A1: 2}) == 2
