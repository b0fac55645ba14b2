"""The offset map of a mirror, and the bounds of a source's offset."""

from __future__ import annotations

import json

import pytest

from spark_integration.errors import PipelineError
from spark_integration.mirror.offset_map import (
    FIRST_SLOT,
    SLOT_OFFSETS,
    MirrorLink,
    OffsetPair,
    OffsetPairs,
    parse_entry,
)

LINK = MirrorLink("c", "t", "id", 0, "copy", "copy-id")


def put_pairs(*known: OffsetPair) -> OffsetPairs:
    """Put pairs as a mirror does."""
    made = OffsetPairs()
    for pair in known:
        made.put(LINK, made.slot_of(LINK, pair.source), pair)
    return made


def test_an_offset_lies_between_its_neighbours() -> None:
    known = put_pairs(OffsetPair(0, 50), OffsetPair(SLOT_OFFSETS, 7_000), OffsetPair(2 * SLOT_OFFSETS, 9_000))
    assert known.lower_bound(LINK, SLOT_OFFSETS - 1) == 50
    assert known.upper_bound(LINK, SLOT_OFFSETS - 1) == 7_000
    assert known.lower_bound(LINK, SLOT_OFFSETS) == 7_000
    assert known.upper_bound(LINK, SLOT_OFFSETS) == 9_000
    assert known.upper_bound(LINK, 2 * SLOT_OFFSETS) is None
    assert known.furthest(LINK) == 2 * SLOT_OFFSETS


def test_the_first_pair_stays_and_of_others_the_last_of_each_slot() -> None:
    known = put_pairs(OffsetPair(0, 50), OffsetPair(10, 60), OffsetPair(20, 70))
    assert known.lower_bound(LINK, 15) == 50
    assert known.lower_bound(LINK, 20) == 70
    assert known.lower_bound(LINK, 0) == 50


def test_the_lower_bound_below_the_first_pair_is_its_target() -> None:
    assert put_pairs(OffsetPair(100, 50)).lower_bound(LINK, 3) == 50


def test_a_recreated_topic_is_unknown() -> None:
    known = put_pairs(OffsetPair(0, 50))
    assert known.furthest(LINK._replace(topic_id="another")) == -1
    assert known.slot_of(LINK._replace(topic_id="another"), 20) == FIRST_SLOT


def test_a_record_of_the_topic() -> None:
    key = json.dumps({**LINK._asdict(), "slot": 3})
    assert parse_entry("m", key, '{"sourceOffset": 1, "targetOffset": 2}') == (LINK, 3, OffsetPair(1, 2))


@pytest.mark.parametrize(("key", "value"), [("{}", "{}"), ("no JSON", "{}"), (None, "{}"), ('{"slot": 1}', None)])
def test_a_topic_of_something_else(key: str, value: str) -> None:
    with pytest.raises(PipelineError, match=r"^topic m is no offset map of a mirror"):
        parse_entry("m", key, value)
