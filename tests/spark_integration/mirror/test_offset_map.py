"""What the offset map of a mirror says of where a source's offset is."""

from __future__ import annotations

import json

import pytest

from spark_integration.errors import PipelineError
from spark_integration.mirror.offset_map import FIRST, SLOT_OFFSETS, Link, Pair, Pairs, entry_of

LINK = Link("c", "t", "id", 0, "copy", "copy-id")


def pairs(*known: Pair) -> Pairs:
    """Put pairs as a mirror does."""
    made = Pairs()
    for pair in known:
        made.put(LINK, made.slot_of(LINK, pair.source), pair)
    return made


def test_an_offset_lies_between_its_neighbours() -> None:
    known = pairs(Pair(0, 50), Pair(SLOT_OFFSETS, 7_000), Pair(2 * SLOT_OFFSETS, 9_000))
    assert known.low(LINK, SLOT_OFFSETS - 1) == 50
    assert known.high(LINK, SLOT_OFFSETS - 1) == 7_000
    assert known.low(LINK, SLOT_OFFSETS) == 7_000
    assert known.high(LINK, SLOT_OFFSETS) == 9_000
    assert known.high(LINK, 2 * SLOT_OFFSETS) is None
    assert known.furthest(LINK) == 2 * SLOT_OFFSETS


def test_the_first_pair_stays_and_of_others_the_last_of_each_slot() -> None:
    known = pairs(Pair(0, 50), Pair(10, 60), Pair(20, 70))
    assert known.low(LINK, 15) == 50
    assert known.low(LINK, 20) == 70
    assert known.low(LINK, 0) == 50


def test_below_the_first_pair_everything_is_behind_it() -> None:
    assert pairs(Pair(100, 50)).low(LINK, 3) == 50


def test_a_topic_made_anew_is_not_known() -> None:
    known = pairs(Pair(0, 50))
    assert known.furthest(LINK._replace(topic_id="another")) == -1
    assert known.slot_of(LINK._replace(topic_id="another"), 20) == FIRST


def test_a_record_of_the_topic() -> None:
    key = json.dumps({**LINK._asdict(), "slot": 3})
    assert entry_of("m", key, '{"sourceOffset": 1, "targetOffset": 2}') == (LINK, 3, Pair(1, 2))


@pytest.mark.parametrize(("key", "value"), [("{}", "{}"), ("no JSON", "{}"), (None, "{}"), ('{"slot": 1}', None)])
def test_a_topic_of_something_else(key: str, value: str) -> None:
    with pytest.raises(PipelineError, match=r"^topic m is no offset map of a mirror"):
        entry_of("m", key, value)
