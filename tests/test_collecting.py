"""Collecting tests leaves the garbage collector as it was."""

from __future__ import annotations

import gc


def test_garbage_is_collected_but_not_searched_in_the_tests() -> None:
    assert gc.isenabled()
    assert gc.get_freeze_count() > 10_000
