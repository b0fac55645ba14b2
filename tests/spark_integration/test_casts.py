"""A cast that gives null, by both of Spark's ways."""

from __future__ import annotations

from typing import Any

import pytest

from spark_integration import casts


class OfSpark3:
    """A column has every name, as that of a field of its value."""

    def __getattr__(self, name: str) -> str:
        return f"field {name}"

    def cast(self, kind: str) -> str:
        return f"cast to {kind}"


class OfSpark4(OfSpark3):
    def try_cast(self, kind: str) -> str:
        return f"try_cast to {kind}"


@pytest.mark.parametrize(("column", "way"), [(OfSpark3(), "cast"), (OfSpark4(), "try_cast")], ids=["3.5", "4"])
def test_what_the_release_has(monkeypatch: pytest.MonkeyPatch, column: Any, way: str) -> None:
    monkeypatch.setattr(casts, "Column", type(column))
    assert casts.try_cast(column, "bigint") == f"{way} to bigint"
