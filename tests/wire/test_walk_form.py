"""Which form of the walk is chosen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from kafkacompat.wire import record_walk, walk_form
from kafkacompat.wire.walk_form import choose_walk
from tests.wire.conftest import find_walk

MODULE = "kafkacompat.wire.compiled_record_walk"
WIRE = Path(walk_form.__file__).parent


def _stub_compiled(monkeypatch: pytest.MonkeyPatch, *sources: bytes) -> None:
    stub = ModuleType(MODULE)
    vars(stub).update(SOURCES=sources, walk=_stub_walk, slice_records=None, __file__="compiled.so")
    monkeypatch.setitem(sys.modules, MODULE, stub)


def _stub_walk(data: bytes, count: int, keys_required: bool) -> tuple[int, list[int]]:
    return len(data), [count, keys_required]


def test_a_module_that_was_built_from_the_sources_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    _stub_compiled(monkeypatch, (WIRE / "record_walk.py").read_bytes(), (WIRE / "record_walk.pxd").read_bytes())
    form = choose_walk(plain_wanted=False)
    assert (str(form), form.walk, form.is_stale) == ("compiled", _stub_walk, False)
    form = choose_walk(plain_wanted=True)
    assert (str(form), form.walk, form.is_stale) == ("plain (KAFKACOMPAT_PLAIN_WALK=1)", record_walk.walk, False)


@pytest.mark.parametrize("stale", ["record_walk.py", "record_walk.pxd"])
def test_a_module_that_was_built_from_other_sources_is_not_chosen(monkeypatch: pytest.MonkeyPatch, stale: str) -> None:
    names = ("record_walk.py", "record_walk.pxd")
    _stub_compiled(monkeypatch, *(b"older" if name == stale else (WIRE / name).read_bytes() for name in names))
    form = choose_walk(plain_wanted=False)
    assert (form.walk, form.is_stale) == (record_walk.walk, True)
    assert str(form) == "plain (compiled.so is older than its source; install kafkacompat again)"


def test_a_module_that_cannot_be_imported_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    def import_module(name: str) -> ModuleType:
        raise ImportError("cannot import name 'renamed'")

    monkeypatch.setattr(walk_form, "import_module", import_module)
    form = choose_walk(plain_wanted=False)
    assert (form.walk, form.is_stale) == (record_walk.walk, True)
    assert str(form) == "plain (cannot import name 'renamed'; install kafkacompat again)"


def test_without_a_compiled_module_the_plain_form_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, MODULE, None)
    form = choose_walk(plain_wanted=False)
    assert (str(form), form.walk, form.is_stale) == ("plain (not compiled for this Python)", record_walk.walk, False)


def _find_chosen(plain: str) -> str:
    code = "from kafkacompat.wire import walk_form; print(walk_form.FORM.name, walk_form.walk.__module__)"
    environment = {**os.environ, "KAFKACOMPAT_PLAIN_WALK": plain}
    return subprocess.check_output([sys.executable, "-c", code], env=environment, text=True).strip()


def test_the_environment_selects_the_plain_form() -> None:
    assert _find_chosen("1") == f"plain {record_walk.__name__}"


def test_otherwise_the_compiled_form_runs_where_there_is_one() -> None:
    find_walk("compiled")
    assert _find_chosen("") == f"compiled {MODULE}"
