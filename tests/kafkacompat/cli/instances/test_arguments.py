"""Configs in an argument: split as kafka-configs does, however many values there are."""

from __future__ import annotations

import re
from itertools import product

import pytest

from kafkacompat.cli.instances.arguments import parse_configs, split_outside_brackets

KAFKAS = re.compile(r",(?=[^\]]*(?:\[|$))")
"""The expression of kafka-configs, which takes quadratic time."""


def test_texts_are_split_as_kafka_does() -> None:
    for length in range(7):
        for characters in product("a,[]", repeat=length):
            text = "".join(characters)
            assert split_outside_brackets(text) == KAFKAS.split(text), text


@pytest.mark.parametrize("count", [1, 200_000])
def test_a_list_of_any_length_is_one_value(count: int) -> None:
    values = ",".join(["10.0.0.0/8"] * count)
    assert parse_configs([f"a=1,whitelist=[{values}],b=2"]) == {"a": "1", "whitelist": values, "b": "2"}
