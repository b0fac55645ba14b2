"""The offsets at which a consumer group continues in a mirror, as far as no record has to be read for them."""

from __future__ import annotations

from typing import Any

import pytest

from spark_integration.errors import PipelineError
from spark_integration.mirror import translation as module
from spark_integration.mirror.offset_map import MirrorLink
from spark_integration.mirror.translation import _links_back, translate

THERE = MirrorLink("A", "orders", "1", 0, "goods", "2")
RETURN = MirrorLink("B", "goods", "2", 0, "orders", "1")


def test_only_the_way_back_goes_back() -> None:
    others = [RETURN._replace(partition=1), RETURN._replace(target="other"), RETURN._replace(topic="other")]
    assert _links_back([*others, RETURN], {THERE: 500}) == {RETURN: 500}


class Busy:
    """A cluster where every group has two members."""

    bootstrap = "b:1"

    def __init__(self, *_: Any) -> None:
        """Take what a Cluster takes."""

    def __enter__(self) -> Busy:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""

    def members(self, _: str) -> int:
        return 2

    def read_committed(self, _: str) -> dict[Any, int]:
        return {}


def test_a_group_with_members_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Cluster", Busy)
    spark: Any = None
    with pytest.raises(
        PipelineError, match=r"^group g has 2 members on b:1, and only they may commit its offsets: end them first"
    ):
        translate(spark, {}, {}, "g")
    with pytest.raises(PipelineError, match=r"^group g has committed nothing"):
        translate(spark, {}, {}, "g", commit=False)
