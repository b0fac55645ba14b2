"""The code of docs/testing/fixtures.md, run by pytest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import kafkacompat.testing
from kafkacompat.testing.profile import INTERNAL_REPLICAS, TEST_PROPERTIES

pytest_plugins = ["pytester"]

PAGE = Path(__file__).parents[3] / "docs/testing/fixtures.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_page_names_the_properties_of_the_profile() -> None:
    profile = PAGE.read_text().partition("## The test profile")[2].partition("\n## ")[0]
    assert set(re.findall(r"`([\w.]+\.[\w.]+)`", profile)) == {*TEST_PROPERTIES, *INTERNAL_REPLICAS}


def test_the_blocks_of_the_page_pass(pytester: pytest.Pytester) -> None:
    with kafkacompat.testing.cluster(1):
        pass  # pytester forgets the modules that its session loads.
    blocks = BLOCK.findall(PAGE.read_text())
    tests = [block for block in blocks if block.startswith("# test_")]
    assert len(tests) == 8
    for block in tests:
        (pytester.path / block.split()[1]).write_text(block)
    options = ("-p", "kafkacompat.testing.plugin", "-p", "no:cacheprovider", "-q")
    result = pytester.runpytest_inprocess(*options)
    result.assert_outcomes(passed=8)
    for block in blocks:
        if block not in tests:
            exec(compile(block, str(PAGE), "exec"), {})
