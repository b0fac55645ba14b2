"""Calls whose names differ between releases of Spark."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import DataType, TimestampType

from spark_integration.topics import casts


class OfSpark3:
    """A column has every attribute, as that of a field of its value."""

    def __getattr__(self, name: str) -> str:
        return f"field {name}"

    def cast(self, kind: str) -> str:
        return f"cast to {kind}"


class OfSpark4(OfSpark3):
    def try_cast(self, kind: str) -> str:
        return f"try_cast to {kind}"


@pytest.mark.parametrize(("column", "way"), [(OfSpark3(), "cast"), (OfSpark4(), "try_cast")], ids=["3.5", "4"])
def test_try_cast_uses_the_way_of_the_release(monkeypatch: pytest.MonkeyPatch, column: Any, way: str) -> None:
    monkeypatch.setattr(casts, "Column", type(column))
    assert casts.try_cast(column, "bigint") == f"{way} to bigint"


def since_4_2(_: DataType, timezone: str | None = None) -> str:
    return f"in {timezone}"


def before_4_2(_: DataType) -> str:
    return "in UTC by itself"


@pytest.mark.parametrize(("way", "result"), [(since_4_2, "in UTC"), (before_4_2, "in UTC by itself")])
def test_a_point_in_time_is_utc_s(monkeypatch: pytest.MonkeyPatch, way: Any, result: str) -> None:
    monkeypatch.setattr(casts, "to_arrow_type", way)
    assert casts.arrow_type(TimestampType()) == result
