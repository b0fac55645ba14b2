"""Which tests with real clients share a worker, and that the modules named as the longest are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.scheduling import LONGEST_GROUPS, SPARK, group_of, rank_of

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]
CONFTEST = """
from compat_tests.conftest import pytest_collection_modifyitems, pytest_xdist_make_scheduler
"""
MODULE = """
import os, pytest

@pytest.mark.parametrize("number", range(5))
def test_worker(number):
    with open({file!r}, "a") as file:
        file.write(os.environ["PYTEST_XDIST_WORKER"] + "\\n")
"""


def test_a_module_is_a_group_and_so_are_all_tests_with_spark() -> None:
    assert group_of("compat_tests/test_moving.py::test_it[a::b]") == "compat_tests/test_moving.py"
    assert (
        group_of("compat_tests/spark/test_sink.py::test_it")
        == group_of("compat_tests/spark/test_audit.py::test")
        == SPARK
    )


def test_the_longest_groups_exist_and_come_first() -> None:
    assert [group for group in LONGEST_GROUPS if not (ROOT / group).exists()] == []
    ranks = [rank_of(f"{group}/test_a.py::test" if group == SPARK else f"{group}::test") for group in LONGEST_GROUPS]
    assert ranks == sorted(ranks)
    assert rank_of("compat_tests/test_kcat.py::test") > max(ranks)


def test_a_group_runs_on_one_worker(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest(CONFTEST)
    files = [pytester.path / f"workers-{number}" for number in range(4)]
    pytester.makepyfile(**{f"test_{file.stem.replace('-', '_')}": MODULE.format(file=str(file)) for file in files})
    result = pytester.runpytest_subprocess("-n", "2", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=20)
    result.stderr.no_fnmatch_line("*")
    workers = [set(file.read_text().split()) for file in files]
    assert [len(names) for names in workers] == [1] * len(files)
    assert set().union(*workers) == {"gw0", "gw1"}
