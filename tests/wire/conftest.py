"""The two forms of the walk over records."""

from __future__ import annotations

from types import ModuleType

import pytest

from kafkacompat.wire import batch_check, record_walk
from kafkacompat.wire.walk_form import StaleModuleError, Walk, load_compiled_walk

FORMS = ("plain", "compiled")


def find_form(form: str) -> ModuleType:
    """Return the walks' module in that form; skips the test if nothing was compiled here."""
    if form == "plain":
        return record_walk
    try:
        return load_compiled_walk()
    except (ModuleNotFoundError, StaleModuleError) as problem:
        pytest.skip(f"there is no compiled walk to test: {problem}")


def find_walk(form: str) -> Walk:
    """Return the walk that checks a batch, in that form."""
    walk: Walk = find_form(form).walk
    return walk


@pytest.fixture(params=FORMS)
def each_form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check batches with the plain form and with the compiled one, in turn."""
    monkeypatch.setattr(batch_check, "walk", find_walk(request.param))
