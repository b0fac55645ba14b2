"""The verdict of `make spark-compare` on two brokers' observations."""

from __future__ import annotations

from pathlib import Path

from compat_tests.spark.observations import Observations, append_observations, compare_observations, read_observations
from compat_tests.spark.scene import plain_value

SEEN: Observations = {"test_a": {"rows": [[0, 0, "a"], [0, 1, "b"]], "refusal": ["Timeout"]}, "test_b": {"rows": []}}


def test_the_same_is_the_same() -> None:
    assert compare_observations({"ours": SEEN, "kafka": SEEN}) == (
        ["3 observations of 2 tests on ours and on kafka: 0 differ"],
        True,
    )


def test_comparison_lists_only_differences() -> None:
    other = {**SEEN, "test_a": {"rows": [[0, 0, "a"], [0, 2, "b"]], "refusal": ["Timeout"]}}
    lines, same = compare_observations({"ours": SEEN, "kafka": other})
    assert not same
    assert lines[:3] == ["test_a: rows", "  ours: [[0, 1, 'b']]", "  kafka: [[0, 2, 'b']]"]


def test_a_missing_observation_is_a_difference() -> None:
    lines, same = compare_observations({"ours": {"test_b": SEEN["test_b"]}, "kafka": {**SEEN, "test_b": {}}})
    assert not same
    assert lines[0::3][:3] == ["test_a: refusal", "test_a: rows", "test_b: rows"]


def test_nothing_noted_is_no_success() -> None:
    assert compare_observations({"ours": {}, "kafka": {}})[1] is False


def test_notes_come_back_from_a_file(tmp_path: Path) -> None:
    """Sets become ordered, numbers of micro-batches become texts, and a topic has the same name on each broker."""
    append_observations(
        tmp_path / "notes", "test_a", plain_value({"rows": {(0, 1, None), (0, 0, "a")}, "batches": {3: set()}}), "a-7"
    )
    append_observations(tmp_path / "notes", "test_b", {"end": {"b-8": {"0": 5}}}, "b-8")
    assert read_observations(tmp_path / "notes") == {
        "test_a": {"rows": [[0, 0, "a"], [0, 1, None]], "batches": {"3": []}},
        "test_b": {"end": {"topic": {"0": 5}}},
    }
    assert read_observations(tmp_path / "absent") == {}
