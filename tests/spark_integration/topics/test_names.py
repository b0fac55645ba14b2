"""Names of topics in a target."""

from __future__ import annotations

import pytest

from spark_integration.errors import PipelineError
from spark_integration.topics.names import TargetNames


def test_a_mapping_goes_before_the_prefix() -> None:
    assert TargetNames("x.", {"a": "b"}).check(["a", "c"]) == {"a": "b", "c": "x.c"}


@pytest.mark.parametrize("name", ["", "a b", "..", "ä", "x" * 250])
def test_a_name_that_kafka_takes_not(name: str) -> None:
    with pytest.raises(PipelineError, match=r"^a would be called .*, which is no topic's name"):
        TargetNames("", {"a": name}).check(["a"])


def test_two_topics_of_one_name() -> None:
    with pytest.raises(PipelineError, match=r"^a and b would both be called b: map them apart$"):
        TargetNames("", {"a": "b"}).check(["a", "b"])


def test_a_mapping_of_nothing() -> None:
    TargetNames("", {"a": "b"}).check_mapped(["a"], "x has")
    with pytest.raises(PipelineError, match=r"^x has no topic a, which --map names"):
        TargetNames("", {"a": "b"}).check_mapped(["b"], "x has")
