"""Collects thousands of tests without garbage collections; later ones leave out the tests and their modules."""

from __future__ import annotations

import gc
from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Pytest: collect the tests.

    Each full search of the garbage collector would go through all modules and tests: it takes a third of a second, and nearly half
    of the time in which they are collected.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
